"""Which cases count, out of how many, and what a tier-gold answer, a fast run or an allowance makes of it."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pytest

from kbgate.tasks.conclusions import Verdict
from kbgate.tasks.findings import Causes
from kbgate.tasks.gate.verdict import judge
from tests.exams import Desk, Rankings, filler

HIT, NEAR, MISS = filler("c0"), filler("c1", "c2", "c3", "c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")
CURATED_NEAR = filler("c1", "c2", "c3", "c9")


def accepted(desk: Desk, count: int = 20, **more: str) -> dict[str, list[str]]:
    """So many cases and these others, by name and gold, all passing and accepted."""
    rankings = {f"q{n:02d}": HIT for n in range(count)} | {name: filler(gold) for name, gold in more.items()}
    for name in rankings:
        desk.case(name, gold=more.get(name, "c0"))
    desk.accept(rankings)
    return rankings


def said(verdict: Verdict, check: str) -> list[str]:
    return [f"{r.level}: {r.sentence}" for r in verdict.reasons if r.check == check]


# ---------------------------------------------------------------- what was curated in the baseline


@pytest.mark.parametrize(("then", "now"), [("gold", "gold"), ("gold", "silver"), ("", "gold")])
def test_a_curated_answer_has_no_slack_also_where_it_is_so_no_longer(then: str, now: str, desk: Desk) -> None:
    """Whoever takes the tier off a card must not thereby make its fall a slip."""
    desk.cards[9]["tier"] = then
    rankings = accepted(desk, 60, curated="c9")
    desk.cards[9]["tier"] = now
    verdict = desk.judge({**rankings, "curated": CURATED_NEAR})
    assert said(verdict, "newly_failing") == ["critical: 1 case newly failing: curated"]


def test_an_answer_that_was_never_curated_slips(desk: Desk) -> None:
    desk.cards[9]["tier"] = "silver"
    rankings = accepted(desk, 60, plain="c9")
    verdict = desk.judge({**rankings, "plain": CURATED_NEAR})
    assert said(verdict, "newly_failing") == ["supporting: 1 case slipped just below rank 3: plain"]


@pytest.mark.parametrize(("then", "now", "grave"), [("gold", "gold", 1), ("gold", "", 1), ("", "gold", 1), ("", "", 0)])
def test_acceptance_forgives_no_curated_answer_also_where_it_is_so_no_longer(
    then: str, now: str, grave: int, desk: Desk
) -> None:
    desk.cards[9]["tier"] = then
    rankings = accepted(desk, 20, curated="c9")
    desk.cards[9]["tier"] = now
    desk.settings += "[acceptance]\nquality = 0.0\nfailing_share = 1.0\n"
    sentences = said(desk.judge({**rankings, "curated": MISS}), "acceptance")
    told = "critical: 1 case with a tier-gold answer failing, none may: curated"
    assert sentences.count(told) == grave


# ---------------------------------------------------------------- acceptance


def demanded(desk: Desk, demands: str, misses: int) -> list[str]:
    rankings = accepted(desk, 20)
    desk.settings += f"[acceptance]\n{demands}\n"
    return said(desk.judge({name: MISS if n < misses else HIT for n, name in enumerate(rankings)}), "acceptance")


@pytest.mark.parametrize(("quality", "speaks"), [("0.9", False), ("0.9000000001", False), ("0.90001", True)])
def test_a_quality_of_just_what_is_demanded_is_enough(quality: str, speaks: bool, desk: Desk) -> None:
    sentences = demanded(desk, f"quality = {quality}\nfailing_share = 1.0\nnoise = 1.0", 2)
    assert any(s.startswith("critical: quality is 0.900, 0.9") for s in sentences) is speaks


@pytest.mark.parametrize(("share", "speaks"), [("0.1", False), ("0.0999999999", False), ("0.09999", True)])
def test_as_many_may_fail_as_the_share_allows(share: str, speaks: bool, desk: Desk) -> None:
    sentences = demanded(desk, f"quality = 0.0\nfailing_share = {share}\nnoise = 1.0", 2)
    assert any(s.startswith("critical: 2 cases of 20 fail, a share of 0.0") for s in sentences) is speaks


def test_failing_cases_without_a_cause_block_until_an_allowance_excuses_them(desk: Desk) -> None:
    demands = "quality = 0.0\nfailing_share = 1.0\nnoise = 1.0"
    told = "critical: 1 failing case without a proven cause or an allowance: q00 (was not looked into)"
    assert demanded(desk, demands, 1) == [told]
    desk.settings += '[[allow]]\ncase = "q00"\ncheck = "acceptance"\nreason = "meant"\nuntil = 2026-06-01\n'
    missed: Rankings = {f"q{n:02d}": MISS if n == 0 else HIT for n in range(20)}
    assert said(desk.judge(missed), "acceptance") == []


@pytest.mark.parametrize(
    ("more", "level"), [("", "advisory"), ('calibrated = {run = "r", date = 2026-05-01}\nlevel = "supporting"', "supporting")]
)
def test_noise_is_advice_until_it_is_calibrated(more: str, level: str, desk: Desk) -> None:
    """One gold at rank 1 of 3: two thirds stand below it."""
    (sentence,) = demanded(desk, f"quality = 0.0\nfailing_share = 1.0\nnoise = 0.6\n{more}", 0)
    assert sentence.startswith(f"{level}: 20 questions of 20 above the ceiling on noise, a share of 0.05 is allowed: q00, ")
    assert "mean noise 0.667, n = 20 of 20" in sentence


@pytest.mark.parametrize(
    ("causes", "answer", "told"),
    [
        (Causes(("q00",)), MISS, ""),
        (Causes(("q01",)), MISS, "q00 (was not looked into)"),
        (Causes((), {"q00": "no single change brings 'c0' back"}), MISS, "q00 (no single change brings 'c0' back)"),
        (Causes((), {}, "KeyError: 'c0'"), MISS, "q00 (could not be looked into: KeyError: 'c0')"),
        (Causes(("q00",)), "timeout", ""),
        (Causes(), "timeout", "q00 (its question got no answer: timeout)"),
    ],
)
@pytest.mark.parametrize(("demanded", "level"), [("critical", "critical"), ("supporting", "supporting")])
def test_a_cause_that_is_not_proven_says_why(
    causes: Causes, answer: Any, told: str, demanded: str, level: str, desk: Desk
) -> None:
    rankings = accepted(desk, 20)
    desk.settings += f'[acceptance]\nquality = 0.0\nnoise = 1.0\nlevel = "{demanded}"\n'
    exam = dataclasses.replace(desk.exam({**rankings, "q00": answer}), causes=causes)
    expected = [f"{level}: 1 failing case without a proven cause or an allowance: {told}"] if told else []
    assert said(judge(exam), "acceptance") == expected


CALIBRATED = 'quality = 0.0\nfailing_share = 1.0\ncalibrated = {run = "r", date = 2026-05-01, noise = {'
LATE = filler("c1", "c2", "c0")
"""No noise: the one gold is the last of three."""


@pytest.mark.parametrize(("noisy", "share", "speaks"), [(1, "0.05", False), (2, "0.05", True), (2, "0.1", False)])
def test_noise_is_judged_question_by_question(noisy: int, share: str, speaks: bool, desk: Desk) -> None:
    """The mean stays far below the ceiling: two of twenty questions with a noise of two thirds have one of 0.067."""
    rankings = accepted(desk, 20)
    desk.settings += f"[acceptance]\nnoisy_share = {share}\n{CALIBRATED}1 = 0.5}}}}\n"
    sentences = said(desk.judge({name: HIT if n < noisy else LATE for n, name in enumerate(rankings)}), "acceptance")
    told = "critical: 2 questions of 20 above the ceiling on noise, a share of 0.05 is allowed: q00, q01"
    assert sentences == ([f"{told}; mean noise 0.067, n = 20 of 20"] if speaks else [])


@pytest.mark.parametrize(
    ("ceilings", "above"),
    [("1 = 0.7, 2 = 0.4", ""), ("1 = 0.6, 2 = 0.4", "one"), ("1 = 0.7, 2 = 0.3", "two"), ("1 = 0.7", "two"), ("", "one, two")],
)
def test_the_ceiling_on_noise_is_that_of_so_many_golds(ceilings: str, above: str, desk: Desk) -> None:
    """At rank 1 of 3 one gold has two thirds, two at ranks 1 and 2 have one; 0.3 for what calibration does not name."""
    desk.case("one")
    desk.case("two", expected=["c0", "c1"])
    desk.settings += f"[acceptance]\nnoisy_share = 0.0\n{CALIBRATED}{ceilings}}}}}\n"
    sentences = said(desk.judge({"one": HIT, "two": filler("c0", "c1")}), "acceptance")
    assert [s.partition(": ")[2].partition("allowed: ")[2].partition(";")[0] for s in sentences] == ([above] if above else [])


def test_noise_that_was_not_measured_is_not_green(desk: Desk) -> None:
    """No question finds its answer: there is no noise to speak of, and nothing that keeps a ceiling."""
    rankings = accepted(desk, 3)
    desk.settings += f"[acceptance]\n{CALIBRATED}1 = 0.5}}}}\n"
    sentences = said(desk.judge(dict.fromkeys(rankings, MISS)), "acceptance")
    assert "critical: noise was not measured, n = 0 of 3" in sentences


# ---------------------------------------------------------------- of how many


@pytest.mark.parametrize(("misses", "name"), [(1, "WARN"), (2, "BLOCK")])
def test_a_ceiling_is_a_share_of_the_cases_with_gold(misses: int, name: str, desk: Desk) -> None:
    """Ten questions without an answer beside ten with one make two of ten no tenth."""
    for n in range(10):
        desk.case(f"none{n}", kind="no_match")
    rankings: dict[str, list[str]] = {f"none{n}": [] for n in range(10)}
    for n in range(10):
        desk.case(f"q{n}")
        rankings[f"q{n}"] = HIT
    desk.accept(rankings)
    desk.gates = "newly_failing = {ceiling = 0.1}\ncontract = {tolerance = 1.0}"
    assert desk.judge({**rankings, **{f"q{n}": MISS for n in range(misses)}}).name == name


@pytest.mark.parametrize(("ceiling", "within"), [("0.0", ""), ("0.08", ""), ("0.1", ", a share of 0.1 may")])
def test_new_failing_cases_are_counted_against_their_ceiling(ceiling: str, within: str, desk: Desk) -> None:
    """Two of 22."""
    rankings = accepted(desk, 20)
    desk.case("new1")
    desk.case("new2")
    desk.gates = f'contract = {{tolerance = 0.5}}\nunbaselined_failing = {{ceiling = {ceiling}, level = "supporting"}}'
    told = said(desk.judge({**rankings, "new1": MISS, "new2": MISS}), "unbaselined_failing")
    assert told == [f"supporting: 2 cases new since the baseline and failing{within}: new1, new2"]


def test_a_new_curated_case_that_fails_is_grave_whatever_the_ceiling(desk: Desk) -> None:
    desk.cards[9]["tier"] = "gold"
    rankings = accepted(desk, 20)
    desk.case("new", gold="c9")
    desk.gates = 'contract = {tolerance = 0.5}\nunbaselined_failing = {ceiling = 1.0, level = "advisory"}'
    verdict = desk.judge({**rankings, "new": filler("c1", "c2", "c3")})
    assert said(verdict, "unbaselined_failing") == ["critical: 1 new canary or tier-gold case failing: new"]


@pytest.mark.parametrize(("won", "offers"), [(1, False), (2, True)])
def test_the_command_that_accepts_is_offered_only_where_more_was_won_than_lost(won: int, offers: bool, desk: Desk) -> None:
    rankings = accepted(desk, 20)
    worse = {**rankings, "q01": MISS, "q02": MISS}
    desk.accept(worse, accept_regression=True, anchor=True)
    better = {**worse, "q00": MISS, **{f"q{n:02d}": HIT for n in range(1, 1 + won)}}
    (sentence,) = said(desk.judge(better), "newly_failing")
    assert ("--accept-regression" in sentence) is offers
    assert (f"{won} newly passing; if that is the better index, accept it with" in sentence) is offers


# ---------------------------------------------------------------- fast


def test_a_fast_run_that_only_warns_is_not_provisional(desk: Desk) -> None:
    """Exit 0 needs no full set to decide; a red or an inconclusive one does."""
    rankings = accepted(desk, 60)
    warned = desk.judge({**rankings, "q00": NEAR}, mode="fast")
    assert (warned.name, warned.exit_code, warned.provisional) == ("WARN", 0, False)


def test_an_inconclusive_fast_run_is_provisional_and_a_full_one_never(desk: Desk) -> None:
    rankings = accepted(desk, 20)
    desk.gates = "contract = {tolerance = 0.02, min_n = 21}"
    for mode, provisional in (("fast", True), ("full", False)):
        verdict = desk.judge(rankings, mode=mode)
        assert (verdict.name, verdict.provisional) == ("INCONCLUSIVE", provisional)
    desk.gates = "contract = {tolerance = 0.02}"
    assert not desk.judge({**rankings, "q00": MISS}).provisional


# ---------------------------------------------------------------- age and removal


@pytest.mark.parametrize(("day", "speaks"), [(dt.date(2026, 8, 30), False), (dt.date(2026, 8, 31), True)])
def test_a_baseline_may_be_as_old_as_is_allowed(day: dt.date, speaks: bool, desk: Desk) -> None:
    """Accepted on the first of June, 90 days allowed."""
    rankings = accepted(desk, 20)
    desk.today = day
    told = said(desk.judge(rankings), "baseline_age")
    assert bool(told) is speaks
    if speaks:
        assert told[0].startswith("supporting: the baseline is 91 days old, 90 are allowed")


def test_a_removed_case_is_told(desk: Desk) -> None:
    rankings = accepted(desk, 20)
    desk.cases = [case for case in desk.cases if case["id"] != "q07"]
    del rankings["q07"]
    assert said(desk.judge(rankings), "removed") == ["supporting: 1 case of the baseline no longer asked: q07"]


# ---------------------------------------------------------------- just at the mark


@pytest.mark.parametrize(("mark", "fails"), [("0.5", False), ("0.5000000001", False), ("0.50001", True)])
def test_a_canary_of_just_the_pass_mark_passes(mark: str, fails: bool, desk: Desk) -> None:
    """One of two that must both be there: a contract of 0.5."""
    desk.settings += f"pass_mark = {mark}\n"
    desk.case("bird", expected=["c0", "c11"], canary=True)
    rankings = {"bird": HIT}
    told = said(desk.judge(rankings), "canaries")
    assert told == (["critical: 1 canary case failing: bird"] if fails else [])


@pytest.mark.parametrize(("slack", "rank", "slips"), [(0, 4, False), (1, 4, True), (1, 5, False), (2, 5, True), (2, 6, False)])
def test_slack_is_as_many_ranks_as_the_gate_says(slack: int, rank: int, slips: bool, desk: Desk) -> None:
    desk.gates = f"contract = {{tolerance = 0.9}}\nnewly_failing = {{ceiling = 0, slack = {slack}}}\n"
    rankings = accepted(desk, 20)
    lower = [f"c{n}" for n in range(1, rank)]
    (told,) = said(desk.judge({**rankings, "q05": filler(*lower, "c0")}), "newly_failing")
    assert told.startswith("supporting: 1 case slipped" if slips else "critical: 1 case newly failing")


def test_where_no_gate_says_so_one_rank_is_slack(desk: Desk) -> None:
    desk.gates = "contract = {tolerance = 0.9}\n"
    rankings = accepted(desk, 20)
    changes = desk.exam({**rankings, "q05": NEAR, "q06": filler("c1", "c2", "c3", "c4", "c0")}).comparison.changes
    assert {change.case.id: str(change.kind) for change in changes} == {"q05": "slipped", "q06": "newly_failing"}


@pytest.mark.parametrize(("ceiling", "level"), [("0.6", "critical"), ("1.0", "supporting")])
def test_the_only_case_is_the_whole_share(ceiling: str, level: str, desk: Desk) -> None:
    desk.gates = f"contract = {{tolerance = 0.9}}\nnewly_failing = {{ceiling = {ceiling}, slack = 0}}\n"
    accepted(desk, 1)
    (sentence,) = said(desk.judge({"q00": MISS}), "newly_failing")
    assert sentence.startswith(f"{level}: 1 case newly failing")
