from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgate.tasks.domain import Mode
from kbgate.tasks.metrics import AGGREGATES, METRICS, Judged, Measured
from kbgate.tasks.results import Run
from kbgate.tasks.retrieval import run_of
from kbgate.tasks.tables import Hits

GOLD = (frozenset({"a"}),)


def run(method: str = "exact", **tops: float) -> Run:
    return run_of(method, {}, {method: {case: Hits.of([("a", score)]) for case, score in tops.items()}}, Mode.FULL)


def figure(name: str, given_run: Run, **has_gold: bool) -> list[Measured]:
    return list(AGGREGATES[name].measure(given_run, has_gold))


def test_the_area_is_the_share_of_pairs_in_order_and_ties_count_half() -> None:
    gold = {"a": True, "b": True, "x": False, "y": False}
    assert figure("auroc", run(a=0.9, b=0.5, x=0.5, y=0.1), **gold) == [Measured("exact", 3.5 / 4, 4)]
    assert figure("suggested_min_similarity", run(a=0.9, b=0.6, x=0.5), a=True, b=True, x=False)[0].value == 0.6


SCORES = st.lists(st.integers(0, 6).map(lambda n: n / 6), min_size=1, max_size=12)


@given(answer=SCORES, none=SCORES)
def test_area_and_threshold_are_those_of_counting_every_pair(answer: list[float], none: list[float]) -> None:
    tops = {f"a{n}": score for n, score in enumerate(answer)} | {f"x{n}": score for n, score in enumerate(none)}
    gold = {case: case.startswith("a") for case in tops}
    pairs = [(one > other) + 0.5 * (one == other) for one in answer for other in none]
    assert figure("auroc", run(**tops), **gold)[0].value == pytest.approx(sum(pairs) / len(pairs))
    gains = {cut: np.mean(np.array(answer) >= cut) - np.mean(np.array(none) >= cut) for cut in sorted({*answer, *none})}
    cut = figure("suggested_min_similarity", run(**tops), **gold)[0].value
    assert gains[cut] == pytest.approx(max(gains.values()))


def test_a_case_whose_gold_nobody_may_see_is_neither_with_nor_without_an_answer() -> None:
    gold = {"a": True, "b": True, "x": False}
    for name in ("auroc", "suggested_min_similarity"):
        assert figure(name, run(a=0.9, b=0.5, x=0.4, hidden=0.95), **gold) == figure(name, run(a=0.9, b=0.5, x=0.4), **gold)


def test_one_kind_of_case_alone_measures_nothing() -> None:
    assert figure("auroc", run(a=0.9), a=True) == []
    assert figure("auroc", run("bm25", a=0.9, b=0.1), a=True, b=False) == []


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
