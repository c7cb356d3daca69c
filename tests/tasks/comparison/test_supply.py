"""Each report says whose a wrong answer is: the model's where the base supplied the truth, and the base's where it did not."""

from __future__ import annotations

from typing import Any

import pytest

from kbgate.tasks.comparison.supply import supply
from tests.exams import Desk, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c0")
MODEL = "look at the model where an answer is wrong"


@pytest.fixture
def asked(desk: Desk) -> Desk:
    """Four questions with gold; one without, and one whose asker may see none of it, say nothing of the base."""
    for n in range(4):
        desk.case(f"q{n}", **({"expected": ["c0", "c1"]} if n == 3 else {}))
    desk.case("moon", kind="no_match")
    desk.cards[9]["domain"] = "theirs"
    desk.case("hidden", entitled={"domain": "theirs"})
    return desk


GIVEN: dict[str, Any] = {"q0": HIT, "q1": HIT, "q2": HIT, "q3": filler("c0", "c1"), "moon": HIT, "hidden": []}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, f"The base supplied the truth: {MODEL} (n = 4)."),
        (
            {"q1": MISS},
            "The base did not supply the truth for 1 of 4 questions: look at the base there (q1). "
            f"For the other 3 it did: {MODEL}.",
        ),
        (
            {"q3": HIT[:1] + HIT[2:], "q0": "raised"},
            "The base did not supply the truth for 1 of 4 questions: look at the base there (q3). "
            "Whether the base supplied the truth is not known for 1 of 4 questions: no answer came (q0). "
            f"For the other 2 it did: {MODEL}.",
        ),
        (
            dict.fromkeys(("q0", "q1", "q2", "q3"), MISS),
            "The base did not supply the truth for 4 of 4 questions: look at the base there (q0, q1, q2, q3).",
        ),
        (
            dict.fromkeys(("q0", "q1", "q2", "q3"), "timeout"),
            "Whether the base supplied the truth is not known for 4 of 4 questions: no answer came (q0, q1, q2, q3).",
        ),
    ],
)
def test_whose_a_wrong_answer_is(changed: dict[str, Any], expected: str, asked: Desk) -> None:
    assert supply(asked.exam({**GIVEN, **changed})) == expected


def test_no_question_with_an_answer_measures_nothing(desk: Desk) -> None:
    desk.case("moon", kind="no_match")
    desk.cards[9]["domain"] = "theirs"
    desk.case("hidden", entitled={"domain": "theirs"})
    assert supply(desk.exam({"moon": HIT, "hidden": []})).startswith("Whether the base supplied the truth was not measured")


def test_an_excerpt_that_no_longer_stands_in_its_card_was_not_supplied(desk: Desk) -> None:
    desk.cards[0]["text"] = "It keeps for six weeks."
    desk.case("keeps", expected=None, evidence=[{"card": "c0", "text": "six weeks"}])
    desk.cases[-1].pop("expected")
    desk.accept({"keeps": HIT})
    assert supply(desk.exam({"keeps": HIT})).startswith("The base supplied the truth")
    desk.cards[0]["text"] = "It keeps."
    assert supply(desk.exam({"keeps": HIT})).startswith("The base did not supply the truth for 1 of 1 question: ")
