"""What stands beside a figure: wins and losses by the metric's own direction, n, clusters, the anchor, parts of the cases."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from kbgate.tasks.gate.verdict import judge
from kbgate.tasks.results import Comparison
from kbgate.tasks.tables import Figure
from tests.exams import Desk, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")


def figure(comparison: Comparison, key: str = "contract@3", part: str = "") -> Mapping[str, Any]:
    """The one place of these tests that knows how figures are kept."""
    (row,) = (row for row in comparison.figures if (row.lane, str(row.figure), row.slice) == ("exact", key, part))
    return dataclasses.asdict(row)


def exam(desk: Desk, then: str, now: str, **of_case: Any) -> Comparison:
    """The comparison of cases a, b, c ... that hit (+) or miss (-) in the baseline and now."""
    names = [chr(ord("a") + n) for n in range(len(then))]
    for name in names:
        desk.case(name, **{field: value[name] for field, value in of_case.items()})
    desk.accept({name: HIT if mark == "+" else MISS for name, mark in zip(names, then, strict=True)})
    return desk.exam({name: HIT if mark == "+" else MISS for name, mark in zip(names, now, strict=True)}).comparison


def test_wins_ties_and_losses_add_up_to_n(desk: Desk) -> None:
    row = figure(exam(desk, "+++---", "+--+--"))
    assert (row["wins"], row["ties"], row["losses"], row["n"]) == (1, 3, 2, 6)


def test_where_less_is_better_a_rise_is_a_loss(desk: Desk) -> None:
    """Failing is the contract turned round: what it gains, the other loses, and p is of the worse direction for both."""
    found = exam(desk, "+++++++-", "------++")
    contract, failing = figure(found), figure(found, "failing@3")
    assert (failing["wins"], failing["ties"], failing["losses"]) == (1, 1, 6)
    assert (failing["baseline"], failing["current"], failing["delta"]) == (0.125, 0.75, 0.625)
    assert contract["delta"] == -0.625
    assert (failing["p"], failing["visible"]) == (contract["p"], contract["visible"])
    assert failing["low"] == pytest.approx(-contract["high"], abs=1e-6)
    assert failing["high"] == pytest.approx(-contract["low"], abs=1e-6)


def test_where_neither_is_better_nothing_is_won_or_lost(desk: Desk) -> None:
    """A card came that says what another does: two legitimate sources are wanted, and no case is the worse for it."""
    for n in range(4):
        desk.case(f"q{n}")
    desk.accept({f"q{n}": filler("c0") for n in range(4)})
    desk.cards[1]["text"] = "C0!"
    exam = desk.exam({f"q{n}": filler("c0") for n in range(4)})
    row = exam.comparison.figure("exact", Figure("redundancy", 3))
    assert (row.baseline, row.current, row.delta) == (0.0, pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert (row.wins, row.ties, row.losses, row.p, row.visible, row.since_anchor) == (None, None, None, None, None, None)
    assert row.low is not None
    assert "redundancy" not in {name for reason in judge(exam).reasons for name in reason.sentence.split()}


def test_a_ceiling_on_what_is_neither_good_nor_bad_acts(desk: Desk) -> None:
    desk.gates += "redundancy = {ceiling = 0.3}\n"
    desk.case("q")
    desk.accept({"q": filler("c0")})
    desk.cards[1]["text"] = "C0!"
    (reason,) = desk.judge({"q": filler("c0")}).reasons
    assert reason.sentence.startswith("redundancy@3 is 0.333, above its ceiling of 0.3")


def test_p_is_of_a_fall_beyond_the_tolerance_its_gate_allows(desk: Desk) -> None:
    """Five of five lost: one pattern of signs in 32. A tolerance of 1 explains all of it."""
    without = figure(exam(desk, "+" * 5, "-" * 5))["p"]
    desk.gates = "contract = {tolerance = 1.0}"
    allowed = desk.exam(dict.fromkeys("abcde", MISS)).comparison
    assert without == pytest.approx(1 / 32, abs=0.01)
    assert figure(allowed)["p"] == 1.0
    assert figure(allowed, "hit@3")["p"] == without


def test_a_tolerance_belongs_to_its_cut_off(desk: Desk) -> None:
    """A gate on contract@1 says nothing of contract@3, one on contract speaks of the verdict's k."""
    exam(desk, "+" * 5, "-" * 5)
    desk.gates = '"contract@1" = {tolerance = 1.0}'
    found = desk.exam(dict.fromkeys("abcde", MISS)).comparison
    assert (figure(found, "contract@1")["p"], figure(found)["p"] < 0.05) == (1.0, True)
    desk.gates = "contract = {tolerance = 1.0}"
    found = desk.exam(dict.fromkeys("abcde", MISS)).comparison
    assert (figure(found, "contract@1")["p"] < 0.05, figure(found)["p"]) == (True, 1.0)


def test_cases_of_one_cluster_count_once(desk: Desk) -> None:
    """Six translations of two questions: an interval as wide as two cases have, not six."""
    of = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y", "f": "y"}
    together = figure(exam(desk, "++++++", "---+++", cluster=of))
    assert (together["n"], together["clusters"]) == (6, 2)
    for name in "abcdef":
        desk.case(name)
    desk.accept(dict.fromkeys("abcdef", HIT), accept_regression=True, anchor=True)
    apart = figure(desk.exam({name: MISS if name < "d" else HIT for name in "abcdef"}).comparison)
    assert (apart["n"], apart["clusters"]) == (6, 6)
    assert together["low"] < apart["low"] - 0.08
    assert together["high"] == apart["high"] == 0.0  # what was 1 cannot rise


def test_what_fell_since_the_anchor_is_told_beside_what_fell_since_the_baseline(desk: Desk) -> None:
    desk.gates = "newly_failing = {ceiling = 1.0}\ncontract = {tolerance = 0.5}"
    names = "abcd"
    for name in names:
        desk.case(name)
    desk.accept(dict.fromkeys(names, HIT))
    desk.accept({**dict.fromkeys(names, HIT), "a": MISS}, accept_regression=True)
    row = figure(desk.exam({**dict.fromkeys(names, HIT), "a": MISS, "b": MISS}).comparison)
    assert (row["delta"], row["since_anchor"]) == (-0.25, -0.5)


def test_an_edited_case_is_in_no_figure_but_its_part_is_not_forgotten(desk: Desk) -> None:
    language = dict.fromkeys("abcdefghijk", "en") | {"l": "es"}
    exam(desk, "+" * 12, "+" * 12, language=language)
    desk.case("l", language="es", query="asked otherwise?")
    found = desk.exam(dict.fromkeys(language, HIT)).comparison
    assert figure(found)["n"] == 11
    assert figure(found, part="language=es")["n"] == 0
    assert figure(found, part="language=en")["n"] == 11


def test_parts_by_filter_and_by_what_the_gold_is(desk: Desk) -> None:
    desk.cards[0] |= {"domain": "travel", "tier": "gold"}
    desk.cards[1] |= {"domain": "pay"}
    desk.case("a")
    desk.case("b", gold="c1")
    desk.case("c", gold="c1", filter={"domain": "pay"})
    rankings: dict[str, list[str]] = {"a": HIT, "b": MISS, "c": ["c1"]}
    desk.accept(rankings)
    found = desk.exam({**rankings, "b": filler("c4", "c5", "c6")}).comparison
    assert {part: figure(found, part=part)["n"] for part in ("filtered=yes", "filtered=no", "domain=travel", "domain=pay")} == {
        "filtered=yes": 1, "filtered=no": 2, "domain=travel": 1, "domain=pay": 2,
    }  # fmt: skip
    assert figure(found, part="domain=pay")["delta"] == -0.5
    assert figure(found, part="filtered=yes")["delta"] == 0.0


@pytest.mark.parametrize("accepted", [False, True])
def test_a_case_is_filtered_where_its_question_or_its_asker_is(accepted: bool, desk: Desk) -> None:
    """Read off the case where there is no baseline, and off the baseline's row where there is one."""
    desk.cards[0]["domain"] = "travel"
    desk.case("free")
    desk.case("asks", filter={"domain": "travel"})
    desk.case("may see", entitled={"domain": "travel"})
    rankings = {"free": HIT, "asks": ["c0"], "may see": ["c0"]}
    if accepted:
        desk.accept(rankings)
    comparison = desk.exam(rankings).comparison
    assert {part: figure(comparison, part=f"filtered={part}")["n"] for part in ("yes", "no")} == {"yes": 2, "no": 1}


@pytest.mark.parametrize(("now", "low", "high"), [("+++++-----", 0.237, 0.763), ("++++++++++", 0.722, 1.0)])
def test_without_a_baseline_a_share_has_its_score_interval(now: str, low: float, high: float, desk: Desk) -> None:
    """Wilson's for 5 and for 10 of 10."""
    for n in range(10):
        desk.case(f"q{n}")
    row = figure(desk.exam({f"q{n}": HIT if mark == "+" else MISS for n, mark in enumerate(now)}).comparison)
    assert (round(row["low"], 3), round(row["high"], 3)) == (low, high)


def test_a_figure_a_case_no_longer_has_counts_as_the_worst_there_is(desk: Desk) -> None:
    """Where less is better the worst is 1: gold that its asker may not see any more leaves no denominator."""
    desk.cards[0]["tier"] = "silver"
    desk.case("a", entitled={"tier": "silver"})
    desk.case("b", gold="c1")
    desk.accept({"a": ["c0"], "b": filler("c1")})
    desk.cards[0]["tier"] = ""
    found = desk.exam({"a": [], "b": filler("c1")}).comparison
    assert (figure(found, "failing@3")["current"], figure(found, "failing@3")["n"]) == (0.5, 2)


def test_a_label_that_all_cases_share_makes_no_part(desk: Desk) -> None:
    """A part that is the whole would print every figure twice."""
    comparison = exam(desk, "++++", "++++", language=dict.fromkeys("abcd", "en"), topic=dict(zip("abcd", "xxyy", strict=True)))
    assert {row.slice for row in comparison.figures} == {"", "topic=x", "topic=y"}


@pytest.mark.parametrize("threshold", ["", "min_similarity = 0.2\n"])
def test_refusals_are_figures_only_where_the_suite_refuses(threshold: str, desk: Desk) -> None:
    desk.retrieval += threshold
    desk.case("a")
    desk.case("none", kind="no_match")
    figures = {str(row.figure) for row in desk.exam({"a": HIT, "none": HIT}).comparison.figures if row.n}
    assert ({"false_answer", "false_refusal"} <= figures) == bool(threshold)
    assert bool({"false_answer", "false_refusal"} & figures) == bool(threshold)
