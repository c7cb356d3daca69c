"""Which lines of a policy could close: asked of the checks with the best and the worst ranking of the very cases."""

from __future__ import annotations

from typing import Any

import pytest

from kbgate.tasks.errors import Refused
from kbgate.tasks.gate.rehearsal import can_close
from tests.exams import Desk, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")
OPEN = "newly_failing = {ceiling = 1.0, slips = 1000}\n"
NAMES = [f"q{n:02d}" for n in range(20)]


def accepted(desk: Desk, gates: str, **of_case: Any) -> dict[str, list[str]]:
    for name in NAMES:
        desk.case(name, **of_case)
    rankings = dict.fromkeys(NAMES, HIT)
    desk.accept(rankings)
    desk.gates = gates
    return rankings


@pytest.mark.parametrize(("gates", "closes"), [
    ("contract = {tolerance = 1.0}", False),
    ("contract = {tolerance = 0.99}", True),
    ("contract = {floor = 0.0}", False),
    ("contract = {floor = 0.01}", True),
    ("failing = {ceiling = 1.0}", False),
    ("failing = {ceiling = 0.99}", True),
    ("mrr = {tolerance = 0.5, level = 'supporting'}", False),
    ("ndcg = {tolerance = 0.5}", True),
    ("fidelity = {floor = 0.95}", False),
    ("stability = {floor = 0.95}", False),
    ('contract = {tolerance = 0.5, rule = "significant"}', True),
    ("newly_failing = {ceiling = 0, slack = 9, slips = 1000}", False),
    ("newly_failing = {ceiling = 0, slack = 8, slips = 1000}", True),
    ("newly_failing = {ceiling = 0, slack = 9, slips = 19}", True),
    ("newly_failing = {ceiling = 0.99, slips = 1000}", True),
])  # fmt: skip
def test_a_line_counts_if_some_ranking_would_make_it_fire(gates: str, closes: bool, desk: Desk) -> None:
    """Of twelve cards the gold is the twelfth at worst: slack of nine behind the third reaches it."""
    rankings = accepted(desk, gates if "newly_failing" in gates else OPEN + gates)
    exam = desk.exam(rankings)
    assert can_close(exam) is closes
    assert ("no critical gate could close" in str(desk.judge(rankings).reasons)) is not closes


def test_a_slice_and_an_acceptance_that_block_are_gates(desk: Desk) -> None:
    rankings = accepted(desk, OPEN + "contract = {tolerance = 1.0}")
    assert desk.judge(rankings).code == "no_gates"
    desk.settings += "[acceptance]\nquality = 0.5\n"
    assert desk.judge(rankings).code == ""


def test_cards_that_all_fit_the_top_k_can_still_be_lost(desk: Desk) -> None:
    """Of three cards in a top three no order hides one: that it is not there at all is the worst."""
    for card in desk.cards[:3]:
        card["tier"] = "silver"
    for name in NAMES:
        desk.case(name, filter={"tier": "silver"})
    rankings = {name: ["c0", "c1", "c2"] for name in NAMES}
    desk.accept(rankings)
    assert desk.judge(rankings).name == "PASS"


def test_what_only_a_wide_open_policy_lets_pass_is_no_first_baseline(desk: Desk) -> None:
    """A first run has nothing to be compared with: what the next ones could say is asked of the best ranking there is."""
    desk.gates = OPEN + "contract = {tolerance = 1.0}"
    for name in NAMES:
        desk.case(name)
    verdict = desk.judge(dict.fromkeys(NAMES, HIT))
    assert {reason.code for reason in verdict.reasons} == {"no_baseline", "no_gates"}
    with pytest.raises(Refused, match="no critical gate could close"):
        desk.accept(dict.fromkeys(NAMES, HIT))


def test_a_baseline_that_leaves_nothing_to_lose_is_no_fault_of_the_policy_and_can_be_replaced(desk: Desk) -> None:
    for name in NAMES:
        desk.case(name)
    desk.accept(dict.fromkeys(NAMES, MISS))
    assert desk.judge(dict.fromkeys(NAMES, MISS)).code == ""
    assert all(row.scores["contract@3"] == 1.0 for row in desk.accept(dict.fromkeys(NAMES, HIT)).cases.values())
