"""Slips: how many may stand just below the cut, from where that is measured, and how long an accepted one counts."""

from __future__ import annotations

import pytest

from kbgate.tasks.conclusions import Verdict
from kbgate.tasks.errors import InputError, Refused
from tests.exams import Desk, filler

HIT, NEAR, FAR = filler("c0"), filler("c1", "c2", "c3", "c0"), filler("c1", "c2", "c3", "c4", "c0")
FREE = "contract = {tolerance = 1.0, level = 'advisory'}\nhit = {floor = 0.0}\n"


def rankings(count: int, slips: int, start: int = 0) -> dict[str, list[str]]:
    """So many cases, of which some slipped."""
    return {f"q{n:03d}": NEAR if start <= n < start + slips else HIT for n in range(count)}


def accepted(desk: Desk, count: int, gates: str | None = None) -> None:
    for name in rankings(count, 0):
        desk.case(name)
    desk.accept(rankings(count, 0))
    desk.gates = gates or desk.gates


def said(verdict: Verdict) -> list[str]:
    return [f"{r.level}: {r.sentence}" for r in verdict.reasons if r.check == "newly_failing"]


@pytest.mark.parametrize(("count", "slips", "name"), [
    (10, 1, "WARN"), (10, 2, "BLOCK"), (39, 2, "BLOCK"), (40, 2, "WARN"), (40, 3, "BLOCK"), (59, 3, "BLOCK"), (60, 3, "WARN"),
])  # fmt: skip
def test_half_of_what_the_contract_may_lose_may_slip_and_one_always(count: int, slips: int, name: str, desk: Desk) -> None:
    accepted(desk, count, "contract = {tolerance = 0.1}")
    verdict = desk.judge(rankings(count, slips))
    levels = {reason.level for reason in verdict.reasons if reason.check == "newly_failing"}
    assert levels == {"critical" if name == "BLOCK" else "supporting"}
    # Two of ten are beyond the tolerance itself.
    assert verdict.name == name


@pytest.mark.parametrize(("gates", "allowed"), [
    ("newly_failing = {ceiling = 0, slips = 0}\n" + FREE, 0),
    ("newly_failing = {ceiling = 0, slips = 2}\n" + FREE, 2),
    ("newly_failing = {ceiling = 1.0}\n" + FREE, 1),
    ("newly_failing = {ceiling = 0}\ncontract = {floor = 0.1}", 1),
    ("newly_failing = {ceiling = 0}\n'contract@1' = {tolerance = 1.0}", 1),
    ("newly_failing = {ceiling = 0}\n'contract@3' = {tolerance = 0.4}", 4),
])  # fmt: skip
def test_as_many_may_slip_as_is_written(gates: str, allowed: int, desk: Desk) -> None:
    """A tolerance that cannot block, or of another figure, is no measure: one may."""
    accepted(desk, 20, gates)
    if allowed:
        assert desk.judge(rankings(20, allowed)).name == "WARN"
    verdict = desk.judge(rankings(20, allowed + 1))
    assert verdict.name == "BLOCK"
    assert f"slipped just below rank 3, {allowed} may: q000" in said(verdict)[0]
    assert said(verdict)[0].endswith(f'accept it with: kbgate baseline update {desk.folder} --accept-regression --reason "..."')


@pytest.mark.parametrize(("level", "told"), [("supporting", "supporting"), ("advisory", "supporting")])
def test_more_are_as_grave_as_the_gate_and_never_lighter_than_few(level: str, told: str, desk: Desk) -> None:
    accepted(desk, 20, f'newly_failing = {{ceiling = 0, level = "{level}"}}\ncontract = {{tolerance = 0.1}}')
    (sentence,) = said(desk.judge(rankings(20, 2)))
    assert sentence.startswith(f"{told}: 2 cases slipped just below rank 3, 1 may: ")


def test_only_a_line_of_newly_failing_has_slips(desk: Desk) -> None:
    desk.case("a")
    desk.gates = "contract = {tolerance = 0.1, slips = 1}"
    with pytest.raises(InputError, match=r"gates\.contract\.slips: only newly_failing has it"):
        desk.judge({"a": HIT})


def test_an_accepted_slip_counts_until_it_passes(desk: Desk) -> None:
    """One a night inside the slack: the second night is refused, not the sixth looked at."""
    accepted(desk, 60)
    desk.accept(rankings(60, 1))
    assert said(desk.judge(rankings(60, 1))) == [
        "supporting: 1 case slipped just below rank 3 (1 of them in the baseline already): q000"
    ]
    second = desk.judge(rankings(60, 2))
    assert (second.name, second.exit_code) == ("BLOCK", 1)
    assert "2 cases slipped just below rank 3 (1 of them in the baseline already), 1 may: q000, q001" in said(second)[0]
    with pytest.raises(Refused, match="2 cases slipped"):
        desk.accept(rankings(60, 2))
    assert desk.accept(rankings(60, 1)).cases["q000"].slipped, "accepted twice, it still counts"
    assert not desk.accept(rankings(60, 1, start=1)).cases["q000"].slipped
    assert desk.judge(rankings(60, 1, start=1)).name == "WARN"


def test_an_accepted_slip_that_passes_again_is_newly_passing(desk: Desk) -> None:
    accepted(desk, 60)
    desk.accept(rankings(60, 1))
    assert [str(change.kind) for change in desk.exam(rankings(60, 0)).comparison.changes] == ["newly_passing"]
    assert not desk.accept(rankings(60, 0)).cases["q000"].slipped


def test_the_slack_is_measured_from_k_and_not_from_an_accepted_rank(desk: Desk) -> None:
    accepted(desk, 60)
    desk.accept(rankings(60, 1))
    verdict = desk.judge({**rankings(60, 1), "q000": FAR})
    assert said(verdict) == ["critical: 1 case newly failing: q000"]


@pytest.mark.parametrize("given", ["raised", "timeout", "malformed", []])
def test_an_accepted_slip_that_is_not_answered_is_newly_failing(given: str | list[str], desk: Desk) -> None:
    accepted(desk, 60)
    desk.accept(rankings(60, 1))
    assert "critical: 1 case newly failing: q000" in said(desk.judge({**rankings(60, 1), "q000": given}))


def test_a_slip_that_was_knowingly_accepted_is_none_any_more(desk: Desk) -> None:
    accepted(desk, 60)
    known = desk.accept(rankings(60, 2), accept_regression=True)
    assert known.summary.accepted.accepted_regression == ["q000", "q001"]
    assert not known.cases["q000"].slipped
    assert said(desk.judge(rankings(60, 2))) == []
    assert said(desk.judge(rankings(60, 3))) == ["supporting: 1 case slipped just below rank 3: q002"]


def test_a_case_that_never_passed_slips_nowhere(desk: Desk) -> None:
    for name in rankings(20, 0):
        desk.case(name)
    desk.accept(rankings(20, 5))
    assert desk.judge(rankings(20, 5)).name == "PASS"


def test_editing_a_slipped_case_does_not_make_it_pass(desk: Desk) -> None:
    accepted(desk, 60)
    desk.accept(rankings(60, 1))
    desk.case("q000", query="q000? ")
    assert said(desk.judge(rankings(60, 2)))[0].startswith("critical: 2 cases slipped")


def test_an_allowance_excuses_a_slip_until_its_day(desk: Desk) -> None:
    accepted(desk, 60)
    desk.settings += '[[allow]]\ncase = "q000"\ncheck = "newly_failing"\nreason = "meant"\nuntil = 2026-06-01\n'
    assert said(desk.judge(rankings(60, 2))) == ["supporting: 1 case slipped just below rank 3: q001"]
    desk.today = desk.today.replace(day=2)
    assert desk.judge(rankings(60, 2)).name == "BLOCK"


def test_a_case_that_is_a_canary_by_now_slips_no_more(desk: Desk) -> None:
    accepted(desk, 60)
    desk.accept(rankings(60, 1))
    desk.case("q000", canary=True)
    assert said(desk.judge(rankings(60, 1))) == ["critical: 1 case newly failing: q000"]


def test_cases_that_fail_are_told_before_cases_that_slipped(desk: Desk) -> None:
    """Two slips block as ten failing cases do; the first line is of what is worse, not of what is first in the alphabet."""
    desk.gates = "contract = {tolerance = 1.0}\nnewly_failing = {ceiling = 0, slack = 1, slips = 0}\n"
    for n in range(20):
        desk.case(f"q{n:02d}")
    rankings = {f"q{n:02d}": filler("c0") for n in range(20)}
    desk.accept(rankings)
    slipped, failing = filler("c1", "c2", "c3", "c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")
    changed = {f"q{n:02d}": slipped for n in range(2)} | {f"q{n:02d}": failing for n in range(5, 9)}
    sentences = [reason.sentence for reason in desk.judge({**rankings, **changed}).reasons if reason.level == "critical"]
    assert [sentence.split(":")[0] for sentence in sentences] == [
        "4 cases newly failing", "2 cases slipped just below rank 3, 0 may",
    ]  # fmt: skip
