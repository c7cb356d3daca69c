"""What calibrate states is what the gate does: the rates by the real gate over simulated nights."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kbgate.flows import evaluate
from kbgate.tasks.comparison.compare import compare
from kbgate.tasks.comparison.power import rules_that_never_pass
from kbgate.tasks.conclusions import Code, Exam, Level, VerdictName
from kbgate.tasks.domain import Case, Mode
from kbgate.tasks.gate.opening import opening
from kbgate.tasks.gate.verdict import judge
from kbgate.tasks.results import Scores
from kbgate.tasks.runs.history import SCHEMA, HistoryLine
from kbgate.tasks.schema import Counts, Fingerprints
from kbgate.tasks.studies.calibration import agreement, noise_ceilings
from kbgate.tasks.studies.nights import blocked_by_flips, detectable, false_alarms, flips_told
from kbgate.tasks.tables import REFERENCE, Figure, Floats, LaneScores, Mask
from tests.conftest import MEDICATION, edit_text
from tests.exams import Desk, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")


def nightly(desk: Desk, tolerance: float, cases: int = 120) -> Exam:
    """A suite of cases with two answers each, one in five of them half found; slips are free, since noise has no ranks."""
    desk.gates = f"newly_failing = {{ceiling = 0.7, slips = {cases}}}\ncontract = {{tolerance = {tolerance}}}"
    for n in range(cases):
        desk.case(f"q{n:03d}", expected=["c0", "c1"])
    rankings = {f"q{n:03d}": filler("c0", "c1") if n % 5 else filler("c0", "c4", "c5", "c6") for n in range(cases)}
    desk.accept(rankings)
    return desk.exam(rankings)


def bundled(home: Path, tolerance: float) -> Exam:
    """The bundled suite as it was examined, under a tolerance alone."""
    exam = evaluate.run(str(MEDICATION), home=str(home)).exam
    gates = {
        "contract": exam.suite.gates["contract"].model_copy(update={"tolerance": tolerance, "floor": None}),
        "newly_failing": exam.suite.gates["newly_failing"].model_copy(update={"ceiling": 0.7, "slips": len(exam.asked)}),
    }
    suite = exam.suite.model_copy(update={"gates": gates, "slices": (), "acceptance": None})
    return dataclasses.replace(exam, suite=suite)


def blocking(exam: Exam, noise: Callable[[Floats], Floats]) -> set[str]:
    """The checks of the real gate that block when the contract of each case is moved by noise."""
    method, contract = exam.run.method, Figure("contract", exam.suite.top_k)
    by_case = exam.scores.of(method)[contract]
    values = np.array(list(by_case.values()))
    moved = dict(zip(by_case, np.round((values + noise(values)).clip(0, 1), 6).tolist(), strict=True))
    # The index loses nothing: what exact search would have found moves alike.
    alike = {name for name in (method, REFERENCE) if name in exam.scores.lanes}
    lanes = {name: with_figure(lane, contract, moved) if name in alike else lane for name, lane in exam.scores.lanes.items()}
    scores = Scores(lanes, exam.scores.placements)
    comparison = compare(exam.suite, exam.golden, exam.asked, exam.run, scores, exam.baseline)
    verdict = judge(dataclasses.replace(exam, scores=scores, comparison=comparison))
    return {reason.check for reason in verdict.reasons if reason.level == Level.CRITICAL}


def with_figure(lane: LaneScores, figure: Figure, by_case: dict[str, float]) -> LaneScores:
    """The scores of a lane with other values of one figure."""
    values, place = lane.values.copy(), lane.figures.index(figure)
    for number, case in enumerate(lane.cases):
        if case in by_case:
            values[number, place] = by_case[case]
    return dataclasses.replace(lane, values=values)


@pytest.mark.slow
@pytest.mark.parametrize(("deviation", "tolerance"), [(0.01, 0.0005), (0.05, 0.02), (0.1, 0.04)])
def test_the_gate_blocks_as_often_as_calibrate_prints(deviation: float, tolerance: float, desk: Desk) -> None:
    """Noise at the ceiling of a range only ever lowers a mean: calibrate must count that in, as the gate does."""
    exam = nightly(desk, tolerance)
    stated = false_alarms(exam.suite, exam.scores.of("exact"), {}, deviation)["any"]
    draw, nights = np.random.default_rng(4), 250
    blocked = sum(bool(blocking(exam, lambda values: draw.normal(0, deviation, len(values)))) for _ in range(nights)) / nights
    assert blocked == pytest.approx(stated, abs=0.02 + 2 * (stated * (1 - stated) / nights) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(("deviation", "tolerance"), [(0.01, 0.003), (0.05, 0.015), (0.1, 0.03)])
def test_so_it_does_on_the_bundled_suite(deviation: float, tolerance: float, home: Path) -> None:
    """The suite's own scores and A/A deltas (none: every build of its index ranks alike), its own clusters."""
    exam, draw = bundled(home, tolerance), np.random.default_rng(5)
    canaries = frozenset(name for name, case in exam.asked.items() if case.canary)
    stated = false_alarms(exam.suite, exam.scores.of(exam.run.method), {}, deviation, canaries)
    nights = [blocking(exam, lambda values: draw.normal(0, deviation, len(values))) for _ in range(50)]
    for check, rate in stated.items():
        blocked = sum(
            {"any": bool(checks), "contract@5": "limits.contract" in checks}.get(check, check in checks) for checks in nights
        )
        assert blocked / 50 == pytest.approx(rate, abs=0.02 + 2 * (rate * (1 - rate) / 50) ** 0.5), check


@pytest.mark.parametrize(("clusters", "check"), [(216, "contract@3"), (50, "contract@3"), (216, "newly_failing"), (50, "any")])
def test_the_power_is_what_calibrate_states(clusters: int, check: str, desk: Desk) -> None:
    """Two answers a case, one in five of them half found: these neither fail anew nor lose more than a half."""
    exam = nightly(desk, 0.02, clusters)
    gates = {**exam.suite.gates, "newly_failing": exam.suite.gates["newly_failing"].model_copy(update={"ceiling": 0.0})}
    suite = exam.suite.model_copy(update={"gates": gates})
    share = detectable(suite, exam.asked, exam.scores, 12)[check]
    worth = np.array([1.0 if n % 5 else 0.5 for n in range(clusters)])
    lost = np.random.default_rng(7).random((4000, clusters)) < share
    speaks = {"contract@3": (lost * worth).mean(axis=1) > 0.02 + 1e-9, "newly_failing": (lost & (worth == 1)).any(axis=1)}
    speaks["any"] = speaks["contract@3"] | speaks["newly_failing"]
    assert speaks[check].mean() == pytest.approx(0.8, abs=0.05)


FREE = "newly_failing = {ceiling = 1.0, slips = 1000}\ncontract = {tolerance = 0.5}"
PART = '[[slice]]\nby = "topic"\nmetric = "contract"\ntolerance = 0.1\nlevel = "critical"\nmin_n = 20\n'
SUPPLY = "[acceptance]\nquality = 0.9\nfailing_share = 0.2\n"


@pytest.mark.parametrize(
    ("settings", "line", "loses"),
    [
        (PART, "topic=small contract@3", lambda lost: lost[:, :20].mean(axis=1) > 0.1 + 1e-9),
        (PART, "topic=large contract@3", lambda lost: lost[:, 20:].mean(axis=1) > 0.1 + 1e-9),
        (PART.replace("20", "21"), "topic=small contract@3", None),
        (PART.replace("critical", "supporting"), "topic=large contract@3", None),
        (SUPPLY, "acceptance", lambda lost: lost.mean(axis=1) > 0.1 + 1e-9),
        (SUPPLY.replace("0.9", "0.5"), "acceptance", lambda lost: lost.mean(axis=1) > 0.2 + 1e-9),
        (SUPPLY + 'level = "supporting"\n', "acceptance", None),
    ],
)
def test_a_part_and_the_supply_contract_are_lines_as_any_other(
    settings: str, line: str, loses: Callable[[Mask], Mask] | None, desk: Desk
) -> None:
    """100 questions, the first 20 of a topic of their own: what is stated is lost in four of five simulated sets."""
    desk.gates, names = FREE, [f"q{n:02d}" for n in range(100)]
    desk.settings += settings
    for n, name in enumerate(names):
        desk.case(name, topic="small" if n < 20 else "large")
    desk.accept(dict.fromkeys(names, filler("c0")))
    exam = desk.exam(dict.fromkeys(names, filler("c0")))
    stated = detectable(exam.suite, exam.asked, exam.scores, 12)
    assert (line in stated) is (loses is not None)
    if loses is not None:
        lost = np.random.default_rng(7).random((4000, 100)) < stated[line]
        assert loses(lost).mean() == pytest.approx(0.8, abs=0.05)
        assert stated["any"] <= stated[line]
        assert "four times out of five" in opening(exam, judge(exam))


@pytest.mark.parametrize("tier", ["gold", ""])
def test_one_lost_tier_gold_answer_breaks_the_supply_contract(tier: str, desk: Desk) -> None:
    desk.gates, names = FREE, [f"q{n:02d}" for n in range(60)]
    desk.settings += "[acceptance]\nquality = 0.0\nfailing_share = 1.0\n"
    desk.cards[9] |= {"tier": tier} if tier else {}
    for n, name in enumerate(names):
        desk.case(name, gold="c9" if n < 2 else "c0")
    rankings = {name: filler("c9" if n < 2 else "c0") for n, name in enumerate(names)}
    desk.accept(rankings)
    exam = desk.exam(rankings)
    # One of two is lost in 80 of 100 sets where each is lost in 55.
    assert detectable(exam.suite, exam.asked, exam.scores, 12)["acceptance"] == (
        pytest.approx(0.553, abs=0.03) if tier else 1.0
    )


def test_where_a_gold_can_fall_no_deeper_than_the_slack_only_slips_are_seen(desk: Desk) -> None:
    exam = nightly(desk, 0.99, 50)
    line = exam.suite.gates["newly_failing"].model_copy(update={"ceiling": 0.0, "slack": 9, "slips": 10})
    suite = exam.suite.model_copy(update={"gates": {**exam.suite.gates, "newly_failing": line}})
    few, many = (detectable(suite, exam.asked, exam.scores, cards)["newly_failing"] for cards in (13, 12))
    assert few < 0.06
    assert many > 0.25


def test_flips_are_told_with_what_a_ceiling_of_nothing_costs() -> None:
    """204 cases at one flip in a thousand: 1 - 0.999 ** 204."""
    assert blocked_by_flips(0.001, 204, 0.0) == pytest.approx(1 - 0.999**204)
    assert flips_told(0, 204, 3) == (
        "0 of 204 cases changed sides in 3 more examinations: keep newly_failing at ceiling = 0; "
        "if a night flips 1 of 1,000, it blocks 18 % of nights: ceiling = 0.01"
    )
    assert flips_told(3, 204, 3).endswith("blocks 63 % of nights for nothing: ceiling = 0.02")
    assert blocked_by_flips(3 / 612, 204, 0.02) <= 0.01 < blocked_by_flips(3 / 612, 204, 0.01)


@pytest.mark.parametrize(("rule", "fewest"), [("significant", 335), ("noninferior", 189)])
def test_a_rule_that_can_never_pass_is_told_with_the_clusters_it_needs(rule: str, fewest: int, desk: Desk) -> None:
    for clusters, told in ((fewest, 0), (fewest - 1, 1)):
        suite = nightly(desk, 0.02, 10).suite
        gate = suite.gates["contract"].model_copy(update={"rule": rule})
        suite = suite.model_copy(update={"gates": {**suite.gates, "contract": gate}})
        cases = {f"q{n}": Case(f"q{n}", f"{n}?", groups=(("c0",),), grades={"c0": 1}, cluster=f"q{n}") for n in range(clusters)}
        sentences = list(rules_that_never_pass(suite, cases))
        assert len(sentences) == told
        assert all(f"needs at least {fewest} clusters for 0.02" in sentence for sentence in sentences)


def line(mode: Mode, code: int, index: str) -> HistoryLine:
    """A run of the suite by its mode, its exit code and the index it judged."""
    return HistoryLine(
        schema=SCHEMA,
        suite="desk",
        run="20260601T023000Z-abcdef",
        time=dt.datetime(2026, 6, 1, 2, 30, tzinfo=dt.UTC),
        mode=mode,
        method="exact",
        verdict=VerdictName.BLOCK if code else VerdictName.PASS,
        exit_code=code,
        code=Code.NONE,
        fingerprints=Fingerprints(index=index, golden="g", policy="p"),
        kb="f" * 16,
        counts=Counts(cards=12, chunks=12, rows=12, cases=12),
        newly_failing=[],
        newly_passing=[],
        means={},
    )


def test_the_agreement_of_fast_and_full() -> None:
    full, fast = Mode.FULL, Mode.FAST
    history = [line(full, 0, "a"), line(fast, 0, "a"), line(fast, 1, "b"), line(full, 0, "b"), line(fast, 1, "c")]
    assert agreement(history) == (2, 1)


def test_noise_is_proposed_by_how_many_cards_an_answer_needs(desk: Desk) -> None:
    """At least 95 of 100 keep what is proposed, also where k is not a divisor of 1,000 and a third is rounded."""
    rankings = {}
    for n in range(60):
        golds = ["c0", "c1"] if n % 2 else ["c0"]
        desk.case(f"q{n:02d}", expected=golds)
        rankings[f"q{n:02d}"] = MISS if n > 55 else filler("c2", *golds) if n > 1 else filler(*golds)
    desk.cards[9]["domain"] = "theirs"
    desk.case("hidden", expected=["c0", "c1", "c2"], entitled={"domain": "theirs"})
    desk.case("moon", kind="no_match")
    exam = desk.exam({**rankings, "hidden": [], "moon": []})
    assert noise_ceilings(exam.suite, exam.scores) == {"1": 0.334, "2": 0.0}


def test_no_ceiling_on_noise_is_proposed_where_every_case_has_one_gold(desk: Desk) -> None:
    """0.667 at rank 1 of 3, 0 at rank 3: the better the ranking, the more noise."""
    for n in range(20):
        desk.case(f"q{n:02d}")
    exam = desk.exam({f"q{n:02d}": HIT for n in range(20)})
    assert noise_ceilings(exam.suite, exam.scores) == {}


@pytest.mark.slow
def test_calibrate_says_what_a_verdict_is_worth_and_writes_nothing(
    tmp_path: Path, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """All of the bundled questions: a 99th percentile needs them."""
    medication = Path(shutil.copytree(MEDICATION, tmp_path / "medication"))
    before = {file.name for file in medication.iterdir()}
    assert kbgate("calibrate", medication, "--repeats", 1) == 0
    shown = capsys.readouterr().out
    assert re.search(r"0 of \d+ cases changed sides in 1 more examinations: keep newly_failing at ceiling = 0", shown)
    assert "false alarms as observed: contract@5 0.0 %, newly_failing 0.0 %, canaries 0.0 %, any 0.0 %" in shown
    assert "(95 % of the healthy ones keep it): noise = {1 = 0.8, 2 = 0.6}" in shown
    assert re.search(r"one question takes to embed: p50 \d+\.\d ms, p95 .*, p99 .* \(n = 200\)", shown)
    assert {file.name for file in medication.iterdir()} == before


@pytest.mark.slow
def test_calibrate_writes_when_told(medication: Path, kbgate: Callable[..., int]) -> None:
    assert kbgate("calibrate", medication, "--repeats", 1, "--write") == 0
    assert json.loads((medication / "calibration.json").read_text())["flips"] == 0


@pytest.mark.slow
def test_the_band_of_a_rigged_index_is_above_zero(
    medication: Path, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    rigged = "[index]\nef_search = 10\nef_construction = 10\nmax_neighbors = 4\n\n[gates]"
    edit_text(medication / "suite.toml", "[gates]", f'[retrieval]\nmethod = "dense"\ncandidates = 10\n\n{rigged}')
    assert kbgate("calibrate", medication) == 0
    shown = capsys.readouterr().out.split("\n")[0]
    assert "none, every figure is the same" not in shown
