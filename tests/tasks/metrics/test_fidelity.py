from __future__ import annotations

import pytest

from kbgate.tasks.metrics import METRICS, Judged


def fidelity(exact: str, approximate: str, k: int = 5, **more: bool) -> float | None:
    return METRICS["fidelity"].compute(
        Judged(tuple(approximate), exact=tuple(exact), approximate=tuple(approximate), **more), k
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("exact", "approximate", "value"),
    [("ab", "ab", 1.0), ("ab", "a", 0.5), ("ab", "axyzwb", 0.5), ("abcdefg", "abcdefg", 1.0), ("abcde", "vwxyz", 0.0)],
)
def test_the_share_is_of_what_there_was_to_find(exact: str, approximate: str, value: float) -> None:
    """Of two cards that exact search finds, one found is a half, though five were asked for."""
    assert fidelity(exact, approximate) == value


def test_order_inside_the_top_does_not_matter_and_what_is_below_is_not_seen() -> None:
    assert fidelity("abc", "cab", 3) == 1.0
    assert fidelity("abc", "xyzabc", 3) == 0.0


def test_a_question_that_failed_found_nothing_and_one_with_nothing_to_find_is_not_counted() -> None:
    assert fidelity("ab", "ab", failed=True) == 0.0
    assert fidelity("", "", failed=True) == 0.0
    assert fidelity("", "ab") is None
