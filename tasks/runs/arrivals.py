"""What came into the knowledge base since it was last green, and which cases that may touch."""

from __future__ import annotations

import ast
import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kbgate.tasks.domain import Arrivals, Index, Inputs, Material, Mode, Question
from kbgate.tasks.retrieval import Retriever, ScoreKind, lanes_of
from kbgate.tasks.retrieval.lanes import Eligible
from kbgate.tasks.retrieval.run import questions_of
from kbgate.tasks.runs.columns import read_cards
from kbgate.tasks.runs.history import read_history
from kbgate.tasks.runs.runfiles import MANIFEST
from kbgate.tasks.schema import BaselineCase
from kbgate.tasks.tables import Vectors

_ROUNDING = 1e-6
_LEAST_COSINE = -1.0


def arrivals(inputs: Inputs, home: Path, batch: str = "") -> Arrivals | None:
    """Cards that are new, changed or gone since the last green full run, or the baseline; None where there is neither."""
    for line in reversed(read_history(home, inputs.suite.name)):
        manifest = home / "runs" / inputs.suite.name / line.run / MANIFEST
        if line.verdict.green and line.mode == Mode.FULL and manifest.exists():
            return _between(f"run {line.run}", read_cards(manifest), _hashes(inputs), batch)
    return since_baseline(inputs, batch)


def since_baseline(inputs: Inputs, batch: str = "") -> Arrivals | None:
    """Cards that are new, changed or gone since the baseline; None where there is none."""
    if inputs.baseline is None:
        return None
    then = {name: card.hash for name, card in inputs.baseline.cards.items()}
    return _between("the baseline", then, _hashes(inputs), batch)


def _hashes(inputs: Inputs) -> dict[str, str]:
    return {name: card.hash for name, card in inputs.kb.cards.items()}


def _between(since: str, then: Mapping[str, str], now: Mapping[str, str], batch: str) -> Arrivals:
    return Arrivals(
        since,
        batch,
        new=tuple(sorted(set(now) - set(then))),
        changed=tuple(sorted(card for card in set(now) & set(then) if now[card] != then[card])),
        removed=tuple(sorted(set(then) - set(now))),
    )


def touched_cases(inputs: Inputs, material: Material, vectors: Vectors, as_of: dt.datetime) -> tuple[str, ...]:
    """Cases a change may touch.

    New or edited ones; those whose gold or baseline top k holds a changed or removed card; those for which a row of a new
    or changed card reaches the baseline's k-th score in a lane.

    `vectors`: one per case of the golden set, in its order. Without a baseline, or where a setting changed how cards become
    rankings, every case is touched; so is it where a card came and a lane's scores are of a kind only the lane itself knows.
    """
    baseline, change, cases = inputs.baseline, since_baseline(inputs), inputs.golden.cases
    if baseline is None or change is None or baseline.summary.provenance.settings != material.settings:
        return tuple(cases)
    moved, newcomers = {*change.changed, *change.removed}, frozenset({*change.new, *change.changed})
    touched = set()
    for name, case in cases.items():
        row = baseline.cases.get(name)
        if row is None or row.hash != case.hash or moved & {*case.grades, *row.top}:
            touched.add(name)
    if newcomers:
        questions = dict(zip(cases, questions_of(cases, vectors, as_of), strict=True))
        for lane in lanes_of(inputs.suite.retrieval.method):
            best = _best(lane, inputs, material, questions, newcomers)
            touched |= {name for name, score in best.items() if score >= _limit(baseline.cases.get(name), lane)}
    return tuple(sorted(touched))


def _limit(row: BaselineCase | None, lane: Retriever) -> float:
    """The k-th score of a case in a lane; a lane the baseline did not have has none, and then whatever is there reaches it."""
    return (row.kth if row else {}).get(lane.name, _LEAST_COSINE) - _ROUNDING


def _best(
    lane: Retriever, inputs: Inputs, material: Material, questions: Mapping[str, Question], newcomers: frozenset[str]
) -> dict[str, float]:
    """The best score of the newcomers in a lane, by case; a case they do not come up in is absent."""
    if lane.scores == ScoreKind.COSINE:
        return _best_cosines(material, questions, newcomers)
    if lane.scores == ScoreKind.BM25:
        index = Index(material.rows, material.vectors)
        answers = lane.connect(index, inputs.suite)(tuple(questions.values()), inputs.suite.cuts[-1])
        ranked = [answer.lanes.get(lane.name) for answer in answers]
        best = [
            max((score for card, score in hits.pairs() if card in newcomers), default=0.0) if hits else 0.0 for hits in ranked
        ]
        return {name: score for name, score in zip(questions, best, strict=True) if score != 0.0}
    return dict.fromkeys(questions, float("inf"))


def _best_cosines(material: Material, questions: Mapping[str, Question], newcomers: frozenset[str]) -> dict[str, float]:
    mask = material.rows.of_cards(newcomers)
    rows, eligible = material.vectors[mask], Eligible(material.rows)
    best = {}
    for name, question in questions.items():
        allowed = eligible.rows(question.where)[mask]
        if question.vector is not None and allowed.any():
            best[name] = float(np.max(rows[allowed] @ question.vector))
    return best


def announced_ids(given: object) -> tuple[str, ...]:
    """The card ids that an event announced: a list, a list written as text, text apart by commas, or nothing."""
    if isinstance(given, str) and given.strip().startswith("["):
        try:
            given = ast.literal_eval(given.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            given = str(given).strip(" []")
    if given is None or given in ("None", "null"):
        return ()
    parts = given if isinstance(given, list | tuple) else str(given).split(",")
    return tuple(name for name in (str(part).strip() for part in parts) if name)
