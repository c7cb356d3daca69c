"""Is nothing said where there is nothing to say? Figures of no-answer cases, and the evidence for a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from kbgate.tasks.metrics import Judged, Measured, aggregate, metric
from kbgate.tasks.results import Run
from kbgate.tasks.tables import Floats

SOURCE = "kbgate: no-answer cases"


@metric("false_answer", source=SOURCE, at_k=False, judges_gold=False, higher_is_better=False)
def false_answer(case: Judged, k: int) -> float | None:
    """1 if a case with no answer got one although `min_similarity` is set, else 0."""
    return None if not case.refuses or case.has_gold or case.grades else float(bool(case.ranking) or case.failed)


@metric("false_refusal", source=SOURCE, at_k=False, judges_gold=False, higher_is_better=False)
def false_refusal(case: Judged, k: int) -> float | None:
    """1 if a case with gold got nothing because of `min_similarity`, else 0."""
    return float(not case.ranking) if case.refuses and case.has_gold else None


@aggregate("auroc", source="Fawcett 2006: area under the ROC curve, ties count half", version=2, stored=True)
def auroc(run: Run, has_gold: Mapping[str, bool]) -> Iterator[Measured]:
    """Chance that a question with an answer has a higher top cosine than one without; 0.5 says nothing."""
    from scipy.stats import mannwhitneyu

    answer, none = _top_cosines(run, has_gold)
    if len(answer) and len(none):
        wins = float(mannwhitneyu(answer, none, method="asymptotic").statistic) / (len(answer) * len(none))
        yield Measured(run.method, wins, len(answer) + len(none))


@aggregate("suggested_min_similarity", source="Youden 1950: the cut where true minus false answers is largest", low=-1.0,
           unit="cosine")  # fmt: skip
def suggested_min_similarity(run: Run, has_gold: Mapping[str, bool]) -> Iterator[Measured]:
    """The `min_similarity` that separates questions with and without an answer best; evidence, never applied by itself."""
    answer, none = _top_cosines(run, has_gold)
    if len(answer) and len(none):
        cuts = np.unique(np.concatenate([answer, none]))
        # Both are sorted: how many reach a cut is how many stand at or behind its place.
        reached = 1 - np.searchsorted(answer, cuts) / len(answer)
        wrongly = 1 - np.searchsorted(none, cuts) / len(none)
        yield Measured(run.method, float(cuts[int(np.argmax(reached - wrongly))]), len(answer) + len(none))


def _top_cosines(run: Run, has_gold: Mapping[str, bool]) -> tuple[Floats, Floats]:
    """The best cosine of each answered question, ascending, with and without gold; fused scores do not speak of likeness.

    A question that `has_gold` does not name, since its asker may see none of its gold, has neither.
    """
    lane = run.lanes.get(run.cosine, {})
    top = [(hits.scores[0], has_gold[case]) for case, hits in lane.items() if len(hits) and case in has_gold]
    of = {wanted: np.array(sorted(score for score, gold in top if gold is wanted), dtype=float) for wanted in (True, False)}
    return of[True], of[False]
