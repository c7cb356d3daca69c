from __future__ import annotations

import pytest

from kbgate.tasks.metrics import METRICS, Judged


def quality(ranking: list[str], *expected: str, k: int = 10) -> float | None:
    case = Judged(tuple(ranking), tuple(frozenset({card}) for card in expected), dict.fromkeys(expected, 1.0))
    return METRICS["quality"].compute(case, k)


def test_three_expected_and_the_third_at_fifteen_is_zero() -> None:
    ranking = ["a", "x", "b", *(f"y{n}" for n in range(11)), "c"]
    case = Judged(tuple(ranking), tuple(frozenset({c}) for c in "abc"), dict.fromkeys("abc", 1.0))
    assert METRICS["contract"].compute(case, 10) == pytest.approx(2 / 3)
    assert quality(ranking, "a", "b", "c") == 0.0


def test_two_expected_at_one_and_two_is_one() -> None:
    assert quality(["a", "b"], "a", "b") == pytest.approx(1.0)


def test_between_ninety_and_a_hundred_percent_it_rises_in_a_line() -> None:
    cards = [f"c{n}" for n in range(20)]
    assert quality(cards[:19], *cards, k=20) == pytest.approx(0.5)
    assert quality(cards[:18], *cards, k=20) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("ranking", "groups", "scores", "expected"),
    [
        ("abcdefghij", ["a"], None, 0.9),
        ("abcdefghij", ["c"], None, 0.7),
        ("abcdefghij", ["a", "c"], None, 0.7),
        ("abcdefghij", ["ac"], None, 0.9),
        ("abcdefghij", ["a", "z"], None, None),
        ("abc", ["a"], (0.5, 0.5, 0.1), 0.1),
    ],
)
def test_noise_is_what_scores_below_the_worst_needed_card(
    ranking: str, groups: list[str], scores: tuple[float, ...] | None, expected: float | None
) -> None:
    golds = tuple(frozenset(group) for group in groups)
    assert METRICS["noise"].compute(Judged(tuple(ranking), golds, {"a": 1.0}, scores=scores or ()), 10) == expected


@pytest.mark.parametrize(("ceiling", "expected"), [(None, None), (0.6, 1.0), (0.7, 0.0), (0.75, 0.0)])
def test_noisy_is_noise_above_the_suites_ceiling(ceiling: float | None, expected: float | None) -> None:
    """The gold at rank 3 of 10 has a noise of 0.7; where no ceiling is written, none is kept."""
    case = Judged(tuple("abcdefghij"), (frozenset("c"),), {"c": 1.0}, noise_ceiling=ceiling)
    assert METRICS["noisy"].compute(case, 10) == expected
    assert METRICS["noisy"].compute(Judged(("a",), (frozenset("z"),), {"z": 1.0}, noise_ceiling=ceiling), 10) is None


def test_unjudged_cards_above_the_gold() -> None:
    case = Judged(("x", "r", "y", "a"), (frozenset({"a"}),), {"a": 2.0, "r": 1.0})
    assert METRICS["unjudged_above_gold"].compute(case, 5) == 2.0
    assert METRICS["unjudged_above_gold"].compute(case, 1) == 1.0


def test_redundancy_counts_what_stands_above_already() -> None:
    assert METRICS["redundancy"].compute(Judged(("a", "b", "c"), repeats=frozenset("c")), 4) == 0.25


def test_failing_is_below_ninety_percent() -> None:
    groups = tuple(frozenset({card}) for card in "abcdefghij")
    assert METRICS["failing"].compute(Judged(tuple("abcdefghi"), groups, {"a": 1.0}), 10) == 0.0
    assert METRICS["failing"].compute(Judged(tuple("abcdefgh"), groups, {"a": 1.0}), 10) == 1.0


def test_stability_is_jaccard_with_what_was_accepted() -> None:
    case = Judged(tuple("abc"), accepted=("b", "a", "d"))
    assert METRICS["stability"].compute(case, 3) == 0.5
    assert METRICS["stability"].compute(case, 5) is None
    assert METRICS["top1_agreement"].compute(case, 3) == 0.0
    assert METRICS["stability"].compute(Judged(tuple("abc")), 3) is None


@pytest.mark.parametrize(("mark", "failing", "worth"), [(0.5, 0.0, 0.5), (0.75, 0.0, 0.0), (0.9, 1.0, 0.0), (1.0, 1.0, 0.0)])
def test_failing_and_quality_follow_the_suites_own_pass_mark(mark: float, failing: float, worth: float) -> None:
    """Three of four groups are found: a contract of 0.75."""
    groups = tuple(frozenset({card}) for card in "abcd")
    case = Judged(("a", "b", "c"), groups, {"a": 1.0}, pass_mark=mark)
    assert METRICS["failing"].compute(case, 5) == failing
    assert METRICS["quality"].compute(case, 5) == pytest.approx(worth)
    assert METRICS["quality"].compute(Judged(tuple("abcd"), groups, {"a": 1.0}, pass_mark=mark), 5) == pytest.approx(1.0)
