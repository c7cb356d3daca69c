from __future__ import annotations

import pytest

from tasks.registry import METRICS, Judged


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
