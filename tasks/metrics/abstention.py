"""Is nothing said where there is nothing to say? Figures of no-answer cases, and the evidence for a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kbgate.tasks.domain import Run
from kbgate.tasks.registry import Judged, Measured, aggregate, metric

SOURCE = "kbgate: no-answer cases"


@metric("false_answer", source=SOURCE, at_k=False, judges_gold=False, higher_is_better=False)
def false_answer(case: Judged, k: int) -> float | None:
    """1 if a case with no answer got one although `min_similarity` is set, else 0."""
    return None if not case.refuses or case.has_gold or case.grades else float(bool(case.ranking) or case.failed)


@metric("false_refusal", source=SOURCE, at_k=False, judges_gold=False, higher_is_better=False)
def false_refusal(case: Judged, k: int) -> float | None:
    """1 if a case with gold got nothing because of `min_similarity`, else 0."""
    return float(not case.ranking) if case.refuses and case.has_gold else None


@aggregate("auroc", source="Fawcett 2006: area under the ROC curve, ties count half")
def auroc(run: Run, has_gold: Mapping[str, bool]) -> Iterator[Measured]:
    """Chance that a question with an answer has a higher top cosine than one without; 0.5 says nothing."""
    answer, none = _top_cosines(run, has_gold)
    if len(answer) and len(none):
        wins = (answer[:, None] > none[None, :]).mean() + 0.5 * (answer[:, None] == none[None, :]).mean()
        yield Measured(run.method, float(wins), len(answer) + len(none))


@aggregate("suggested_min_similarity", source="Youden 1950: the cut where true minus false answers is largest", low=-1.0,
           unit="cosine")  # fmt: skip
def suggested_min_similarity(run: Run, has_gold: Mapping[str, bool]) -> Iterator[Measured]:
    """The `min_similarity` that separates questions with and without an answer best; evidence, never applied by itself."""
    answer, none = _top_cosines(run, has_gold)
    if len(answer) and len(none):
        cuts = np.unique(np.concatenate([answer, none]))
        gain = [(answer >= cut).mean() - (none >= cut).mean() for cut in cuts]
        yield Measured(run.method, float(cuts[int(np.argmax(gain))]), len(answer) + len(none))


def _top_cosines(run: Run, has_gold: Mapping[str, bool]) -> list[Any]:
    """The best dense cosine of each answered question, with and without gold; fused scores say nothing about likeness."""
    lanes = set(run.hits["lane"])
    lane = next((name for name in ("exact", "dense") if name in lanes), None)
    hits = run.hits[(run.hits["lane"] == lane) & (run.hits["rank"] == 1)]
    top = dict(zip(hits["case"], hits["score"], strict=True))
    cosines = sorted(top.items())
    return [np.array([x for case, x in cosines if has_gold.get(case, False) is wanted]) for wanted in (True, False)]
