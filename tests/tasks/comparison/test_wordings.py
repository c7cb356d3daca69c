"""Edited cases asked again as they were worded before, where a change is judged by the target's baseline."""

from __future__ import annotations

import pytest

from kbgate.tasks.conclusions import Verdict
from kbgate.tasks.results import ChangeKind
from tests.exams import Desk, Rankings, filler

HIT, NEAR, FAR = filler("c0"), filler("c1", "c2", "c3", "c0"), filler("c1", "c2", "c3", "c4", "c0")
NAMES = [f"q{n:02d}" for n in range(20)]
ALL: Rankings = dict.fromkeys(NAMES, HIT)


@pytest.fixture
def change(desk: Desk) -> Desk:
    """Twenty cases that passed, and a pull request that rewords the first."""
    for name in NAMES:
        desk.case(name)
    desk.accept(ALL)
    desk.case("q00", query="q00? In easier words?")
    desk.judges_edits = True
    return desk


def said(verdict: Verdict) -> list[str]:
    return [f"{r.level}: {r.sentence}" for r in verdict.reasons if r.check == "newly_failing"]


def test_a_case_that_fails_as_it_was_worded_is_newly_failing(change: Desk) -> None:
    change.earlier = {"q00": FAR}
    exam, verdict = change.exam(ALL), change.judge(ALL)
    assert (verdict.name, verdict.exit_code) == ("BLOCK", 1)
    assert said(verdict) == ["critical: 1 case newly failing: q00; as the baseline words it, before it was edited: q00"]
    (found,) = exam.comparison.changes
    assert (found.kind, found.edited, found.then, found.now) == (ChangeKind.FAILING_AS_IT_WAS, True, {"c0": 1}, {"c0": 5})


def test_one_that_passes_in_both_wordings_is_told_as_edited(change: Desk) -> None:
    change.earlier = {"q00": HIT}
    verdict = change.judge(ALL)
    assert (verdict.name, [reason.check for reason in verdict.reasons]) == ("WARN", ["edited"])


@pytest.mark.parametrize("given", ["raised", "timeout", "malformed", [], None])
def test_a_wording_that_was_not_answered_fails(given: list[str] | str | None, change: Desk) -> None:
    change.earlier = {} if given is None else {"q00": given}
    assert said(change.judge(ALL))[0].startswith("critical: 1 case newly failing: q00")


@pytest.mark.parametrize(("now", "before", "kind"), [
    (HIT, NEAR, "slipped"), (NEAR, HIT, "slipped"), (NEAR, NEAR, "slipped"), (NEAR, FAR, "failing_as_it_was"),
    (FAR, NEAR, "newly_failing"), (FAR, FAR, "newly_failing"), (FAR, HIT, "newly_failing"),
])  # fmt: skip
def test_the_worse_of_both_wordings_counts(now: list[str], before: list[str], kind: str, change: Desk) -> None:
    change.earlier = {"q00": before}
    assert [str(found.kind) for found in change.exam({**ALL, "q00": now}).comparison.changes] == [kind]


def test_a_case_that_failed_before_has_nothing_to_lose(desk: Desk) -> None:
    for name in NAMES:
        desk.case(name)
    desk.accept({**ALL, "q00": FAR})
    desk.case("q00", query="q00? In easier words?")
    desk.judges_edits = True
    assert [str(found.kind) for found in desk.exam(ALL).comparison.changes] == ["newly_passing"]


def test_the_baselines_gold_and_filter_are_asked_and_not_the_new_ones(change: Desk) -> None:
    """The change says that another card answers, which stands first: the baseline's card stands fifth."""
    change.case("q00", gold="c1")
    change.earlier = {"q00": FAR}
    exam = change.exam({**ALL, "q00": FAR})
    assert exam.comparison.edited == ("q00",)
    assert [(str(found.kind), found.now) for found in exam.comparison.changes] == [("failing_as_it_was", {"c0": 5})]


def test_only_a_pull_request_judges_edits(change: Desk) -> None:
    change.judges_edits, change.earlier = False, {"q00": FAR}
    assert change.judge(ALL).name == "WARN"


def test_a_case_that_the_subset_leaves_out_is_judged_as_well(change: Desk) -> None:
    change.earlier = {"q00": FAR}
    verdict = change.judge({name: HIT for name in NAMES[1:10]}, mode="fast")
    assert (verdict.name, verdict.provisional) == ("BLOCK", True)


def test_an_allowance_excuses_it(change: Desk) -> None:
    change.earlier = {"q00": FAR}
    change.settings += '[[allow]]\ncase = "q00"\ncheck = "newly_failing"\nreason = "meant"\nuntil = 2026-06-01\n'
    assert said(change.judge(ALL)) == []


def test_a_renamed_and_reworded_case_is_removed_and_new(change: Desk) -> None:
    """Nothing tells it from another case: both are told."""
    change.cases = [case for case in change.cases if case["id"] != "q00"]
    change.case("other", query="q00? In easier words?")
    verdict = change.judge({**{name: HIT for name in NAMES[1:]}, "other": HIT})
    assert [reason.check for reason in verdict.reasons] == ["removed"]


def test_a_card_whose_answering_excerpt_is_gone_is_no_answer_to_the_old_wording(desk: Desk) -> None:
    desk.cards[0]["text"] = "take it at night, with water"
    for name in NAMES:
        desk.case(name)
    desk.case("q00", expected=[], evidence=[{"card": "c0", "text": "with water"}])
    desk.accept(ALL)
    desk.case("q00", query="q00? When?", expected=[], evidence=[{"card": "c0", "text": "at night"}])
    desk.judges_edits, desk.earlier = True, {"q00": HIT}
    assert said(desk.judge(ALL)) == []
    desk.cards[0]["text"] = "take it at night"
    assert said(desk.judge(ALL))[0].startswith("critical: 1 case newly failing: q00; as the baseline words it")


def test_two_cases_that_asked_the_same_are_asked_once(desk: Desk) -> None:
    for name in NAMES:
        desk.case(name, query="same?")
    desk.accept(ALL)
    for name in NAMES[:2]:
        desk.case(name, query=f"{name}?")
    desk.judges_edits, desk.earlier = True, {"same": FAR}
    exam = desk.exam(ALL)
    assert exam.earlier is not None
    assert len(exam.earlier.scores.placements) == 1
    assert said(desk.judge(ALL))[0].startswith("critical: 2 cases newly failing: q00, q01")
