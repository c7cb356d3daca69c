"""Limits at their edge: exactly what is allowed passes, a hair more does not, and what a rule may not say it does not say."""

from __future__ import annotations

import pytest

from kbgate.tasks.conclusions import Verdict
from tests.exams import Desk, Rankings, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")
FREE = "newly_failing = {ceiling = 1.0}\ncontract = {tolerance = 1.0}\n"
"""Gates that let every case fall, so that the gate in question is the only one to speak."""


def names(count: int) -> list[str]:
    return [f"q{n:02d}" for n in range(count)]


def with_misses(count: int, misses: int) -> dict[str, list[str]]:
    return {name: MISS if n < misses else HIT for n, name in enumerate(names(count))}


def accepted(desk: Desk, count: int, gates: str) -> None:
    """So many cases, all passing, accepted; then these gates."""
    for name in names(count):
        desk.case(name)
    desk.accept(with_misses(count, 0))
    desk.gates = gates


def said(verdict: Verdict, check: str) -> list[str]:
    return [f"{r.level}: {r.sentence}" for r in verdict.reasons if r.check == check]


# ---------------------------------------------------------------- fidelity in filtered cases


def filtered(desk: Desk, gate: str, lost: tuple[str, ...]) -> list[str]:
    """What is said of 18 unfiltered cases and two filtered ones when the index answers nothing to some of them."""
    for name in names(20):
        desk.case(name, **({"filter": {"tier": "silver"}} if name in ("q00", "q01") else {}))
    desk.cards[0]["tier"] = "silver"
    rankings: Rankings = {name: ["c0"] if name in ("q00", "q01") else HIT for name in names(20)}
    desk.accept(rankings)
    desk.gates = FREE + gate
    return said(desk.judge({**rankings, **dict.fromkeys(lost, "raised")}), "filtered_fidelity")


def test_filtered_cases_are_held_to_the_floor_apart(desk: Desk) -> None:
    assert filtered(desk, "fidelity = {floor = 0.9}", ("q00",)) == [
        "critical: fidelity@3 is 0.500 in filtered cases, below its floor of 0.9, n = 2"
    ]


def test_what_unfiltered_cases_lose_is_not_told_of_the_filtered_ones(desk: Desk) -> None:
    assert filtered(desk, "fidelity = {floor = 0.9}", ("q02", "q03", "q04")) == []


@pytest.mark.parametrize(("floor", "speaks"), [("0.5", False), ("0.5000000001", False), ("0.50001", True)])
def test_a_floor_of_just_the_filtered_fidelity_is_kept(floor: str, speaks: bool, desk: Desk) -> None:
    assert bool(filtered(desk, f"fidelity = {{floor = {floor}}}", ("q00",))) is speaks


def test_filtered_fidelity_speaks_at_the_level_of_its_gate(desk: Desk) -> None:
    (sentence,) = filtered(desk, 'fidelity = {floor = 0.9, level = "supporting"}', ("q01",))
    assert sentence.startswith("supporting: ")


def test_a_fidelity_gate_without_a_floor_says_nothing_of_filtered_cases(desk: Desk) -> None:
    assert filtered(desk, "fidelity = {tolerance = 1.0}", ("q00",)) == []


# ---------------------------------------------------------------- min_n


@pytest.mark.parametrize(("min_n", "name"), [(20, "BLOCK"), (21, "INCONCLUSIVE")])
def test_a_gate_of_exactly_min_n_cases_judges(min_n: int, name: str, desk: Desk) -> None:
    accepted(desk, 20, f"newly_failing = {{ceiling = 1.0}}\ncontract = {{tolerance = 0.01, min_n = {min_n}}}")
    verdict = desk.judge(with_misses(20, 2))
    assert verdict.name == name
    if name == "INCONCLUSIVE":
        assert verdict.code == "underpowered"
        assert said(verdict, "limits.contract") == [
            "inconclusive: contract@3 was measured on n = 20 cases, at least 21 are needed"
        ]


@pytest.mark.parametrize("level", ["supporting", "advisory"])
def test_a_lesser_gate_with_too_few_cases_speaks_at_its_own_level(level: str, desk: Desk) -> None:
    accepted(desk, 20, f'{FREE}mrr = {{floor = 0.1}}\nhit = {{floor = 0.1, min_n = 21, level = "{level}"}}')
    verdict = desk.judge(with_misses(20, 0))
    assert said(verdict, "limits.hit") == [f"{level}: hit@3 was measured on n = 20 cases, at least 21 are needed"]
    assert verdict.exit_code == 0


def test_a_gate_on_what_no_case_has_says_not_measured(desk: Desk) -> None:
    accepted(desk, 20, f"{FREE}predicate_recall = {{floor = 0.5}}")
    verdict = desk.judge(with_misses(20, 0))
    assert (verdict.name, verdict.code) == ("INCONCLUSIVE", "underpowered")
    assert said(verdict, "limits.predicate_recall") == ["inconclusive: predicate_recall: not measured (n = 0)"]


# ---------------------------------------------------------------- slices


def sliced(desk: Desk, gate: str, metric: str = "contract") -> list[str]:
    """What the slices say when one of four cases on travel falls, and none of sixteen on pay."""
    for n, name in enumerate(names(20)):
        desk.case(name, topic="travel" if n < 4 else "pay")
    desk.accept(with_misses(20, 0))
    desk.gates = FREE
    desk.settings += f'[[slice]]\nby = "topic"\nmetric = "{metric}"\n{gate}\n'
    return said(desk.judge(with_misses(20, 1)), "slices")


def test_a_slice_of_exactly_min_n_cases_blocks(desk: Desk) -> None:
    (sentence,) = sliced(desk, 'tolerance = 0.2\nlevel = "critical"\nmin_n = 4')
    assert sentence.startswith("critical: topic=travel: contract@3 fell by 0.250 (1.000 to 0.750, 95 % interval -0.")
    assert sentence.endswith("; 0.2 is allowed, n = 4")


def test_a_slice_of_one_case_less_informs_only(desk: Desk) -> None:
    (sentence,) = sliced(desk, 'tolerance = 0.2\nlevel = "critical"\nmin_n = 5')
    assert sentence.startswith("advisory: topic=travel: ")
    assert sentence.endswith(", n = 4 (below min_n = 5: informs only)")


@pytest.mark.parametrize(("tolerance", "speaks"), [("0.25", False), ("0.2499999999", False), ("0.2499", True)])
def test_a_slice_may_fall_by_its_tolerance(tolerance: str, speaks: bool, desk: Desk) -> None:
    assert bool(sliced(desk, f"tolerance = {tolerance}\nmin_n = 1")) is speaks


def test_a_slice_where_less_is_better_falls_by_rising(desk: Desk) -> None:
    (sentence,) = sliced(desk, "tolerance = 0.1\nmin_n = 1", "failing")
    assert sentence.startswith("supporting: topic=travel: failing@3 rose by 0.250 (0.000 to 0.250")


# ---------------------------------------------------------------- rules


def significant(desk: Desk, tolerance: float, misses: int, level: str = "critical") -> Verdict:
    gate = f'contract = {{tolerance = {tolerance}, rule = "significant", level = "{level}"}}'
    accepted(desk, 40, f"newly_failing = {{ceiling = 1.0}}\nhit = {{floor = 0.1}}\n{gate}")
    return desk.judge(with_misses(40, misses))


def test_a_fall_that_is_real_but_not_beyond_the_tolerance_for_sure_is_inconclusive(desk: Desk) -> None:
    """Ten of 40 lost: surely more than nothing, perhaps no more than 0.2. The test is of the tolerance, not of zero."""
    verdict = significant(desk, 0.2, 10)
    assert (verdict.name, verdict.code) == ("INCONCLUSIVE", "underpowered")
    assert "0.2 is allowed, and chance alone could do it (p = 0." in verdict.reasons[0].sentence


def test_the_same_fall_is_beyond_a_small_tolerance_for_sure(desk: Desk) -> None:
    verdict = significant(desk, 0.02, 10)
    assert verdict.name == "BLOCK"
    assert "0.02 is allowed, p = 0.00" in verdict.reasons[0].sentence


def test_an_unsure_fall_of_a_supporting_gate_warns(desk: Desk) -> None:
    verdict = significant(desk, 0.2, 10, "supporting")
    assert (verdict.name, verdict.exit_code, verdict.code) == ("WARN", 0, "")


def test_a_tolerance_smaller_than_what_would_show_is_underpowered(desk: Desk) -> None:
    """Of 40 cases at least 16.5 points must go before the test calls it a fall."""
    verdict = significant(desk, 0.02, 0)
    assert (verdict.name, verdict.code) == ("INCONCLUSIVE", "underpowered")
    assert verdict.reasons[0].sentence.startswith("contract@3: only a drop beyond 0.16")
    assert verdict.reasons[0].sentence.endswith(" would show; the tolerance is 0.02, n = 40")


def test_a_tolerance_larger_than_what_would_show_passes(desk: Desk) -> None:
    assert significant(desk, 0.2, 0).name == "PASS"


def test_two_significant_gates_share_their_chance_of_a_false_alarm(desk: Desk) -> None:
    """Six of 40 lost have p = 0.016 alone; beside a second gate of the same figures it is doubled, by Holm."""
    gate = '{tolerance = 0.0, rule = "significant"}'
    accepted(desk, 40, f"newly_failing = {{ceiling = 1.0}}\ncontract = {gate}")
    alone = desk.judge(with_misses(40, 6)).reasons[0].sentence
    desk.gates = f"newly_failing = {{ceiling = 1.0}}\ncontract = {gate}\nhit = {gate}"
    both = desk.judge(with_misses(40, 6)).reasons[0].sentence
    first, second = (float(sentence.split("p = ")[1].split(",")[0]) for sentence in (alone, both))
    assert first == pytest.approx(1 / 64, abs=0.005)
    assert second == pytest.approx(2 * first, abs=0.0002)


@pytest.mark.parametrize(("tolerance", "name"), [("0.03", "INCONCLUSIVE"), ("0.3", "WARN")])
def test_a_noninferior_gate_passes_only_what_excludes_a_worsening(tolerance: str, name: str, desk: Desk) -> None:
    gate = f'contract = {{tolerance = {tolerance}, rule = "noninferior"}}'
    accepted(desk, 40, f"newly_failing = {{ceiling = 1.0}}\nhit = {{floor = 0.1}}\n{gate}")
    verdict = desk.judge(with_misses(40, 1))
    assert verdict.name == name
    if name == "INCONCLUSIVE":
        assert "does not exclude a worsening beyond 0.03, n = 40" in verdict.reasons[0].sentence


def test_a_noninferior_gate_looks_at_the_worse_end_also_where_less_is_better(desk: Desk) -> None:
    """Nineteen of 20 failed and all pass now: whatever the interval, nothing got worse."""
    for name in names(20):
        desk.case(name)
    desk.accept(with_misses(20, 19), accept_regression=True)
    desk.gates = FREE + 'failing = {tolerance = 0.02, rule = "noninferior"}'
    assert said(desk.judge(with_misses(20, 0)), "limits.failing") == []


# ---------------------------------------------------------------- floors and ceilings


@pytest.mark.parametrize(("limit", "name"), [("0.9", "WARN"), ("0.9000000001", "WARN"), ("0.90001", "BLOCK")])
def test_a_floor_of_just_the_figure_is_kept(limit: str, name: str, desk: Desk) -> None:
    accepted(desk, 20, f"{FREE}hit = {{floor = {limit}}}")
    assert desk.judge(with_misses(20, 2)).name == name


@pytest.mark.parametrize(("limit", "name"), [("0.1", "WARN"), ("0.0999999999", "WARN"), ("0.09999", "BLOCK")])
def test_a_ceiling_of_just_the_figure_is_kept(limit: str, name: str, desk: Desk) -> None:
    accepted(desk, 20, f"{FREE}failing = {{ceiling = {limit}}}")
    assert desk.judge(with_misses(20, 2)).name == name


@pytest.mark.parametrize("level", ["critical", "supporting", "advisory"])
def test_a_limit_speaks_at_its_level_and_without_a_baseline_tells_its_interval(level: str, desk: Desk) -> None:
    for name in names(20):
        desk.case(name)
    desk.gates = f'hit = {{floor = 0.95, level = "{level}"}}'
    (sentence,) = said(desk.judge(with_misses(20, 2)), "limits.hit")
    assert sentence == f"{level}: hit@3 is 0.900 (95 % interval +0.699 to +0.972), below its floor of 0.95, n = 20"
