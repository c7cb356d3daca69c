"""What the gate lets through and what it does not. Whatever was not measured is never green."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.conclusions import Level, Verdict
from kbgate.tasks.errors import InputError
from kbgate.tasks.gate import CHECKS, GATED
from kbgate.tasks.gate.verdict import judge
from kbgate.tasks.metrics import METRICS, Metric
from kbgate.tasks.retrieval import RETRIEVERS
from kbgate.tasks.tables import Figure
from tests.conftest import edit_text
from tests.exams import Desk, filler

HIT, NEAR, MISS = filler("c0"), filler("c1", "c2", "c3", "c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")


def cases(desk: Desk, count: int = 20, **fields: Any) -> dict[str, list[str]]:
    for n in range(count):
        desk.case(f"q{n:02d}", **fields)
    return {f"q{n:02d}": HIT for n in range(count)}


def said(verdict: Verdict) -> str:
    return " | ".join(f"{r.level}: {r.sentence}" for r in verdict.reasons)


def test_identical_runs_pass_in_silence(desk: Desk) -> None:
    rankings = cases(desk)
    desk.accept(rankings)
    verdict = desk.judge(rankings)
    assert (verdict.name, verdict.exit_code, verdict.reasons) == ("PASS", 0, ())


def test_one_case_newly_failing_blocks_and_the_first_line_names_it(desk: Desk) -> None:
    rankings = cases(desk, 200)
    desk.accept(rankings)
    verdict = desk.judge({**rankings, "q17": MISS})
    assert (verdict.name, verdict.exit_code) == ("BLOCK", 1)
    assert verdict.reasons[0].sentence == "1 case newly failing: q17"


def test_a_slip_warns(desk: Desk) -> None:
    rankings = cases(desk, 60)
    desk.accept(rankings)
    verdict = desk.judge({**rankings, "q17": NEAR})
    assert (verdict.name, verdict.exit_code) == ("WARN", 0)
    assert said(verdict) == "supporting: 1 case slipped just below rank 3: q17"


@pytest.mark.parametrize(("ceiling", "name"), [("0.1", "WARN"), ("0.09", "BLOCK"), ("0.0999999999", "WARN")])
def test_a_ceiling_is_a_share_of_the_cases_with_slack_for_floats(ceiling: str, name: str, desk: Desk) -> None:
    rankings = cases(desk, 20)
    desk.accept(rankings)
    desk.gates = f"contract = {{tolerance = 0.5}}\nnewly_failing = {{ceiling = {ceiling}}}"
    assert desk.judge({**rankings, "q01": MISS, "q02": MISS}).name == name


WITHOUT_CASES = 'newly_failing = {ceiling = 1.0, level = "advisory"}\n'


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        ("contract = {tolerance = 0.1}", "PASS"),
        ("contract = {tolerance = 0.09}", "BLOCK"),
        ('hit = {floor = 0.1}\ncontract = {tolerance = 0.09, level = "supporting"}', "WARN"),
        ('hit = {floor = 0.1}\ncontract = {tolerance = 0.09, level = "advisory"}', "PASS"),
        ("contract = {floor = 0.9}", "PASS"),
        ("contract = {floor = 0.91}", "BLOCK"),
        ('"contract@1" = {floor = 0.9}', "PASS"),
        ("precision = {ceiling = 0.2}", "BLOCK"),
        ("contract = {tolerance = 0.5, min_n = 21}", "INCONCLUSIVE"),
        ('contract = {tolerance = 0.09, level = "advisory"}', "INCONCLUSIVE"),
        ("", "INCONCLUSIVE"),
    ],
)
def test_limits_at_the_edge(gate: str, expected: str, desk: Desk) -> None:
    rankings = cases(desk, 20)
    desk.accept(rankings)
    desk.gates = WITHOUT_CASES + gate
    assert desk.judge({**rankings, "q01": MISS, "q02": MISS}).name == expected


@pytest.mark.parametrize("gate", ["", "contract = {floor = 0.1}", 'recall = {floor = 0.1, level = "advisory"}'])
def test_a_golden_case_is_a_test_whatever_else_the_gates_say(gate: str, desk: Desk) -> None:
    rankings = cases(desk, 20)
    desk.accept(rankings)
    desk.gates = gate
    assert desk.judge(rankings).name == "PASS"
    assert desk.judge({**rankings, "q01": MISS}).name == "BLOCK"


def test_a_sentence_says_observed_allowed_and_n(desk: Desk) -> None:
    rankings = cases(desk, 20)
    desk.accept(rankings)
    desk.gates = "contract = {tolerance = 0.05, floor = 0.95}"
    sentences = [r.sentence for r in desk.judge({**rankings, "q01": MISS, "q02": MISS}).reasons]
    assert any(
        s.startswith("contract@3 fell by 0.100 (1.000 to 0.900, 95 % interval -0.") and s.endswith("; 0.05 is allowed, n = 20")
        for s in sentences
    )
    assert "contract@3 is 0.900, below its floor of 0.95, n = 20" in sentences


def test_a_metric_where_less_is_better_blocks_when_it_rises(desk: Desk) -> None:
    rankings = cases(desk, 20, filter={"tier": "silver"})
    desk.cards[0]["tier"] = "silver"
    desk.gates = WITHOUT_CASES + "contract = {tolerance = 0.99}\nfalse_exclusion = {tolerance = 0.02}"
    desk.accept({case: ["c0"] for case in rankings})
    desk.cards[0]["tier"] = ""
    verdict = desk.judge({case: [] for case in rankings})
    assert verdict.name == "BLOCK"
    assert "false_exclusion rose by 1.000 (0.000 to 1.000, 95 % interval +0.678 to +1.000); 0.02 is allowed, n = 20" in said(
        verdict
    )


def test_a_floor_of_the_command_line_is_critical(desk: Desk) -> None:
    rankings = cases(desk)
    desk.accept(rankings)
    assert desk.judge(rankings, floors={"contract": 1.0}).name == "PASS"
    assert desk.judge(rankings, floors={"precision@3": 0.5}).name == "BLOCK"


@pytest.mark.parametrize(("failed", "name", "code"), [(1, "BLOCK", 1), (4, "BLOCK", 1), (5, "ERROR", 4), (20, "ERROR", 4)])
@pytest.mark.parametrize("outcome", ["raised", "timeout", "malformed"])
def test_questions_that_failed_are_counted_and_never_leave_a_denominator(
    failed: int, name: str, code: int, outcome: str, desk: Desk
) -> None:
    rankings = cases(desk, 20)
    desk.accept(rankings)
    desk.gates = "contract = {tolerance = 1.0}"
    exam = desk.exam({**rankings, **{f"q{n:02d}": outcome for n in range(failed)}})
    verdict = judge(exam)
    assert (verdict.name, verdict.exit_code) == (name, code)
    assert f"{failed} of 20 cases could not be measured ({failed} {outcome})" in verdict.reasons[0].sentence
    contracts = exam.scores.of("exact")[Figure("contract", 3)]
    assert (len(contracts), sum(contracts.values())) == (20, 20 - failed)


def test_a_case_missing_from_the_run_is_an_error(desk: Desk) -> None:
    rankings = cases(desk)
    desk.accept(rankings)
    verdict = desk.judge({k: v for k, v in rankings.items() if k != "q03"})
    assert verdict.name == "ERROR"
    assert "missing: q03" in verdict.reasons[0].sentence


def test_an_empty_answer_is_right_for_no_match_and_failing_for_gold(desk: Desk) -> None:
    rankings: dict[str, Any] = cases(desk, 20)
    desk.case("none", kind="no_match")
    desk.accept({**rankings, "none": HIT})
    assert desk.judge({**rankings, "none": []}).name == "PASS"
    assert desk.judge({**rankings, "none": [], "q01": []}).name == "BLOCK"


def test_no_baseline_is_inconclusive_with_the_command_to_type(desk: Desk) -> None:
    verdict = desk.judge(cases(desk))
    assert (verdict.name, verdict.exit_code, verdict.code) == ("INCONCLUSIVE", 3, "no_baseline")
    assert f'kbgate baseline update {desk.folder} --reason "' in verdict.reasons[0].sentence


def test_access_that_was_widened_is_told(desk: Desk) -> None:
    rankings: dict[str, Any] = cases(desk, 20)
    desk.cards[9]["tier"] = "silver"
    desk.case("secret", gold="c7", entitled={"tier": "silver"})
    desk.accept({**rankings, "secret": []})
    desk.cards[7]["tier"] = "silver"
    verdict = desk.judge({**rankings, "secret": ["c7"]})
    assert verdict.name == "WARN"
    assert "gold that was hidden from its asker in the baseline is visible now in secret" in said(verdict)


def test_only_questions_without_gold_judge_nothing(desk: Desk) -> None:
    for n in range(5):
        desk.case(f"n{n}", kind="no_match")
    verdict = desk.judge({f"n{n}": HIT for n in range(5)})
    assert "no_gates" in {r.code for r in verdict.reasons}
    assert verdict.exit_code == 3


def test_too_many_edited_or_removed_cases_are_incomparable(desk: Desk) -> None:
    rankings = cases(desk, 20)
    desk.accept(rankings)
    for n in range(2):
        desk.case(f"q{n:02d}", query="otherwise?")
    assert said(desk.judge(rankings)) == "supporting: 2 cases edited since the baseline, and not compared with it: q00, q01"
    desk.case("q02", query="otherwise?")
    verdict = desk.judge(rankings)
    assert (verdict.name, verdict.code) == ("INCONCLUSIVE", "incomparable")
    assert "3 of the baseline's 20 cases were edited or removed" in verdict.reasons[0].sentence


def test_failing_cases_cannot_be_edited_away(desk: Desk) -> None:
    rankings = cases(desk, 20)
    desk.accept(rankings)
    desk.case("q00", query="an easier wording?")
    assert desk.judge({**rankings, "q00": MISS}).name == "BLOCK"


@pytest.mark.parametrize("how", ["removed", "edited"])
@pytest.mark.parametrize("what", ["canary", "curated"])
def test_a_protected_case_cannot_be_removed_or_edited(how: str, what: str, desk: Desk) -> None:
    rankings: dict[str, Any] = cases(desk, 20)
    desk.cards[9]["tier"] = "gold"
    desk.case("canary", canary=True)
    desk.case("curated", gold="c9")
    rankings |= {"canary": HIT, "curated": filler("c9")}
    desk.accept(rankings)
    if how == "removed":
        desk.cases = [c for c in desk.cases if c["id"] != what]
        del rankings[what]
    else:
        desk.case(what, gold="c9" if what == "curated" else "c0", canary=what == "canary", query="otherwise?")
    verdict = desk.judge(rankings)
    assert verdict.name == "BLOCK"
    assert f"1 canary or tier-gold case {how} since the baseline: {what}" in said(verdict)


def test_a_canary_blocks_whatever_the_baseline_says(desk: Desk) -> None:
    rankings = cases(desk, 20)
    desk.case("bird", canary=True)
    desk.accept({**rankings, "bird": MISS}, accept_regression=True)
    verdict = desk.judge({**rankings, "bird": MISS})
    assert verdict.name == "BLOCK"
    assert said(verdict) == "critical: 1 canary case failing: bird"


def test_a_new_failing_case_warns_and_blocks_where_it_is_protected(desk: Desk) -> None:
    rankings: dict[str, Any] = cases(desk, 20)
    desk.accept(rankings)
    desk.case("new")
    assert desk.judge({**rankings, "new": MISS}).name == "WARN"
    desk.case("bird", canary=True)
    assert desk.judge({**rankings, "new": HIT, "bird": MISS}).name == "BLOCK"


def test_a_card_outside_the_askers_access_blocks(desk: Desk) -> None:
    rankings: dict[str, Any] = cases(desk, 20)
    desk.cards[0]["tier"] = "silver"
    desk.case("guest", entitled={"tier": "silver"})
    desk.accept({**rankings, "guest": ["c0"]})
    verdict = desk.judge({**rankings, "guest": ["c0", "c1"]})
    assert verdict.name == "BLOCK"
    assert "cards outside the asker's access were returned in 1 case: guest" in said(verdict)


def test_a_gold_that_vanished_blocks_and_an_unknown_one_is_a_label_error(desk: Desk) -> None:
    rankings = cases(desk, 20)
    desk.case("other", gold="c7")
    desk.accept({**rankings, "other": filler("c7")})
    desk.cards = [card for card in desk.cards if card["id"] != "c7"]
    verdict = desk.judge({**rankings, "other": [c for c in HIT if c != "c7"]})
    assert verdict.name == "BLOCK"
    assert "gold removed from the knowledge base: card 'c7', the answer of other" in verdict.reasons[0].sentence
    desk.case("typo", gold="c77")
    with pytest.raises(InputError, match=r"golden\.jsonl:22: gold 'c77' of case 'typo' is no card"):
        desk.judge({**rankings, "other": HIT, "typo": HIT})


def test_a_metric_of_another_version_or_gone_is_incomparable(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    rankings = cases(desk)
    desk.accept(rankings)
    old = METRICS["ndcg"]
    monkeypatch.setitem(METRICS._load(), "ndcg", dataclasses.replace(old, version=2))
    verdict = desk.judge(rankings)
    assert (verdict.name, verdict.code) == ("INCONCLUSIVE", "incomparable")
    assert "metric ndcg was version 1 in the baseline and is version 2 now" in said(verdict)
    monkeypatch.delitem(METRICS._load(), "ndcg")
    assert "metric ndcg is in the baseline and is no longer computed" in said(desk.judge(rankings))


def test_a_metric_the_baseline_lacks_is_new_and_not_judged(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    rankings = cases(desk)
    desk.accept(rankings)
    part = Metric("coverage", lambda case, k: 1.0, "a test")
    monkeypatch.setitem(METRICS._load(), "coverage", part)
    assert desk.judge(rankings).name == "PASS"
    desk.gates += "coverage = {tolerance = 0.1}"
    verdict = desk.judge(rankings)
    assert verdict.name == "WARN"
    assert "coverage@3 1.000 is new: the baseline has no figure, so it was not judged" in said(verdict)


def test_a_figure_that_is_not_finite_is_an_error(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    rankings = cases(desk)
    monkeypatch.setitem(METRICS._load(), "odd", Metric("odd", lambda case, k: float("nan"), "a test"))
    verdict = desk.judge(rankings)
    assert verdict.name == "ERROR"
    assert "figures that are not finite: odd@1, odd@3" in said(verdict)


def test_a_red_fast_run_is_provisional(desk: Desk) -> None:
    rankings = cases(desk)
    desk.accept(rankings)
    verdict = desk.judge({"q00": HIT, "q01": MISS}, mode="fast")
    assert (verdict.exit_code, verdict.provisional) == (1, True)
    assert not desk.judge({"q00": HIT}, mode="fast").provisional


def test_a_suite_with_one_case(desk: Desk) -> None:
    desk.case("only")
    desk.accept({"only": HIT})
    assert desk.judge({"only": HIT}).name == "PASS"
    assert desk.judge({"only": MISS}).name == "BLOCK"


def test_every_check_and_level_is_known() -> None:
    assert {str(check.level) for check in CHECKS.values()} <= {*Level, GATED}


def test_an_index_that_loses_what_exact_search_finds_is_named_so(
    medication: Path, kbgate: Callable[..., int], home: Path
) -> None:
    """A graph built to be poor: rows that exact search still finds are lost, and the report says by whom."""
    from tests.conftest import last_verdict

    edit_text(medication / "suite.toml", "[gates]", "[index]\nef_search = 1\nef_construction = 2\nmax_neighbors = 2\n\n[gates]")
    edit_text(medication / "suite.toml", "[gates]", '[retrieval]\nmethod = "dense"\n\n[gates]')
    assert kbgate("evaluate", medication) in (1, 4)
    checks = {reason["check"] for reason in last_verdict(home)["reasons"]}
    assert checks & {"lost_by_index", "limits.fidelity", "completeness"}
    assert RETRIEVERS["dense"].reference == "exact"
