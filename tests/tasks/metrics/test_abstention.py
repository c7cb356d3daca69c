from __future__ import annotations

import pandas as pd
import pytest

from kbgate.tasks.domain import Run
from kbgate.tasks.registry import AGGREGATES, METRICS, Judged, Measured
from kbgate.tasks.tables import HIT_COLUMNS

GOLD = (frozenset({"a"}),)


def run(**tops: float) -> Run:
    hits = [("exact", case, 1, "a", score) for case, score in tops.items()]
    return Run("exact", pd.DataFrame(hits, columns=list(HIT_COLUMNS)), pd.DataFrame())


def figure(name: str, found: Run, **has_gold: bool) -> list[Measured]:
    return list(AGGREGATES[name].measure(found, has_gold))


def test_the_area_is_the_share_of_pairs_in_order_and_ties_count_half() -> None:
    found = run(a=0.9, b=0.5, x=0.5, y=0.1)
    gold = {"a": True, "b": True, "x": False, "y": False}
    assert figure("auroc", found, **gold) == [Measured("exact", 3.5 / 4, 4)]
    assert figure("suggested_min_similarity", run(a=0.9, b=0.6, x=0.5), a=True, b=True, x=False)[0].value == 0.6


def test_one_kind_of_case_alone_measures_nothing() -> None:
    assert figure("auroc", run(a=0.9), a=True) == []
    assert figure("auroc", Run("bm25", run(a=0.9).hits.assign(lane="bm25"), pd.DataFrame()), a=True, b=False) == []


@pytest.mark.parametrize(
    ("name", "case", "expected"),
    [
        ("false_answer", Judged(("a",), refuses=True), 1.0),
        ("false_answer", Judged((), refuses=True), 0.0),
        ("false_answer", Judged((), refuses=True, failed=True), 1.0),
        ("false_answer", Judged(("a",)), None),
        ("false_answer", Judged(("a",), GOLD, refuses=True), None),
        ("false_refusal", Judged((), GOLD, refuses=True), 1.0),
        ("false_refusal", Judged(("b",), GOLD, refuses=True), 0.0),
        ("false_refusal", Judged((), GOLD), None),
    ],
)
def test_answers_and_refusals(name: str, case: Judged, expected: float | None) -> None:
    assert METRICS[name].compute(case, 5) == expected
