"""What was not measured, is not there or was never scored is told by name, at the level it has."""

from __future__ import annotations

import dataclasses

import pytest

from kbgate.tasks.conclusions import Exam, Reason
from kbgate.tasks.gate import CHECKS
from kbgate.tasks.results import Scores
from tests.exams import Desk, filler

HIT = filler("c0")
TEXT = "Take one tablet with water each morning."


def reasons(exam: Exam, check: str) -> list[Reason]:
    return list(CHECKS[check].look(exam))


def three(desk: Desk) -> dict[str, list[str]]:
    for name in "abc":
        desk.case(name)
    rankings = dict.fromkeys("abc", HIT)
    desk.accept(rankings)
    return rankings


@pytest.mark.parametrize(
    ("announced", "told"),
    [
        ((), []),
        (("c1", "c2"), []),
        (("lost", "c1"), ["1 card announced by the ingest and not in the knowledge base: lost"]),
        (("z", "lost"), ["2 cards announced by the ingest and not in the knowledge base: lost, z"]),
    ],
)
def test_a_card_that_was_announced_and_did_not_come_is_told(announced: tuple[str, ...], told: list[str], desk: Desk) -> None:
    exam = dataclasses.replace(desk.exam(three(desk)), announced=announced)
    found = reasons(exam, "announced")
    assert [(reason.check, reason.level, reason.sentence) for reason in found] == [("announced", "critical", s) for s in told]


def test_a_card_that_was_announced_and_rejected_is_told_so(desk: Desk) -> None:
    desk.settings += '[kb]\non_bad_card = "reject"\n'
    rankings = three(desk)
    desk.cards.append({"id": "bad"})
    (reason,) = reasons(dataclasses.replace(desk.exam(rankings), announced=("bad", "lost")), "announced")
    assert reason.sentence.endswith(": bad, lost; 1 of them rejected, the first at cards.jsonl:13: 'text' is missing")


def test_a_case_that_was_never_scored_is_an_error_by_name(desk: Desk) -> None:
    exam = desk.exam(three(desk))
    assert reasons(exam, "finite") == []
    placements = {name: place for name, place in exam.scores.placements.items() if name == "b"}
    (reason,) = reasons(dataclasses.replace(exam, scores=Scores(exam.scores.lanes, placements)), "finite")
    assert (reason.check, reason.level, reason.sentence) == ("finite", "error", "2 cases not scored: a, c")
    assert reason.cases == ("a", "c")


def test_an_excerpt_that_left_its_card_is_told_and_so_is_a_card_that_is_gone(desk: Desk) -> None:
    desk.cards[0]["text"] = TEXT
    desk.case("a", evidence=[{"card": "c0", "text": "with water each morning"}], must_cite_one_of=None)
    desk.case("b", gold="c7")
    desk.cases = [{key: value for key, value in case.items() if value is not None} for case in desk.cases]
    rankings = {"a": HIT, "b": filler("c7")}
    desk.accept(rankings)
    desk.cards[0]["text"] = "Take one tablet."
    desk.cards = [card for card in desk.cards if card["id"] != "c7"]
    gone = [card for card in HIT if card != "c7"]
    found = reasons(desk.exam({"a": gone, "b": gone}), "vanished_gold")
    start = "gold removed from the knowledge base: "
    assert [(reason.level, reason.sentence, reason.cases) for reason in found] == [
        ("critical", f"{start}evidence 'with water each morning' gone from card 'c0', the answer of a", ("a",)),
        ("critical", f"{start}card 'c7', the answer of b", ("b",)),
    ]
