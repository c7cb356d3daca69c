"""What calibrate states is what the gate does: the rates by the real gate over simulated nights."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kbgate.flows import evaluate
from kbgate.tasks.comparison.compare import compare
from kbgate.tasks.comparison.statistics import Floats
from kbgate.tasks.domain import Exam, Scores
from kbgate.tasks.gate import judge
from kbgate.tasks.studies.calibration import agreement, detectable, false_alarms
from kbgate.tasks.tables import REFERENCE
from tests.conftest import MEDICATION, edit_text
from tests.exams import Desk, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")


def nightly(desk: Desk, tolerance: float, cases: int = 120) -> Exam:
    """A suite of cases with two answers each, one in five of them half found."""
    desk.gates = f"newly_failing = {{ceiling = 1.0}}\ncontract = {{tolerance = {tolerance}}}"
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
        "newly_failing": exam.suite.gates["newly_failing"].model_copy(update={"ceiling": 1.0}),
    }
    suite = exam.suite.model_copy(update={"gates": gates, "slices": [], "acceptance": None})
    return Exam(**{**vars(exam), "suite": suite})


def blocking(exam: Exam, noise: Callable[[Floats], Floats]) -> set[str]:
    """The checks of the real gate that block when the contract of each case is moved by noise."""
    figures, method = exam.scores.figures.copy(), exam.run.method
    of_key = figures["metric"] == f"contract@{exam.suite.top_k}"
    values = figures[of_key & (figures["lane"] == method)].set_index("case")["value"]
    moved = np.round((values + noise(values.to_numpy())).clip(0, 1), 6)
    # The index loses nothing: what exact search would have found moves alike.
    both = of_key & figures["lane"].isin([method, REFERENCE])
    figures.loc[both, "value"] = figures.loc[both, "case"].map(moved)
    scores = Scores(figures, exam.scores.placements)
    comparison = compare(exam.suite, exam.golden, exam.asked, exam.run, scores, exam.baseline)
    verdict = judge(Exam(**{**vars(exam), "scores": scores, "comparison": comparison}))
    return {reason.check for reason in verdict.reasons if reason.level == "critical"}


@pytest.mark.slow
@pytest.mark.parametrize(("deviation", "tolerance"), [(0.01, 0.0005), (0.05, 0.02), (0.1, 0.04)])
def test_the_gate_blocks_as_often_as_calibrate_prints(deviation: float, tolerance: float, desk: Desk) -> None:
    """Noise at the ceiling of a range only ever lowers a mean: calibrate must count that in, as the gate does."""
    exam = nightly(desk, tolerance)
    own = exam.scores.figures
    table = own[own["lane"] == "exact"].pivot(index="case", columns="metric", values="value")
    stated = false_alarms(exam.suite, table, {}, deviation)["any"]
    draw, nights = np.random.default_rng(4), 600
    blocked = sum(bool(blocking(exam, lambda values: draw.normal(0, deviation, len(values)))) for _ in range(nights)) / nights
    assert blocked == pytest.approx(stated, abs=0.02 + 2 * (stated * (1 - stated) / nights) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(("deviation", "tolerance"), [(0.01, 0.003), (0.05, 0.015), (0.1, 0.03)])
def test_so_it_does_on_the_bundled_suite(deviation: float, tolerance: float, home: Path) -> None:
    """The suite's own scores and A/A deltas (none: every build of its index ranks alike), its own clusters."""
    exam, draw = bundled(home, tolerance), np.random.default_rng(5)
    canaries = frozenset(exam.asked.loc[exam.asked["canary"].astype(bool), "id"])
    own = exam.scores.figures[exam.scores.figures["lane"] == exam.run.method]
    table = own.pivot(index="case", columns="metric", values="value")
    stated = false_alarms(exam.suite, table, {}, deviation, canaries)
    nights = [blocking(exam, lambda values: draw.normal(0, deviation, len(values))) for _ in range(150)]
    for check, rate in stated.items():
        blocked = sum(
            {"any": bool(found), "contract@5": "limits.contract" in found}.get(check, check in found) for found in nights
        )
        assert blocked / 150 == pytest.approx(rate, abs=0.02 + 2 * (rate * (1 - rate) / 150) ** 0.5), check


@pytest.mark.parametrize(("clusters", "check"), [(216, "contract@3"), (50, "contract@3"), (216, "newly_failing")])
def test_the_power_is_what_calibrate_states(clusters: int, check: str, desk: Desk) -> None:
    suite = nightly(desk, 0.02).suite
    gates = {**suite.gates, "newly_failing": suite.gates["newly_failing"].model_copy(update={"ceiling": 0.0})}
    suite = suite.model_copy(update={"gates": gates})
    fall = detectable(suite, clusters)[check]
    lost = (np.random.default_rng(7).random((4000, clusters)) < fall).mean(axis=1)
    limit = 0.02 if check == "contract@3" else 0.0
    assert (lost > limit + 1e-9).mean() == pytest.approx(0.8, abs=0.05)


def test_the_agreement_of_fast_and_full() -> None:
    def line(mode: str, code: int, index: str) -> dict[str, object]:
        return {"mode": mode, "exit_code": code, "fingerprints": {"index": index}}

    history = [line("full", 0, "a"), line("fast", 0, "a"), line("fast", 1, "b"), line("full", 0, "b"), line("fast", 1, "c")]
    assert agreement(history) == (2, 1)


def test_calibrate_says_what_a_verdict_is_worth_and_writes_nothing(
    medication: Path, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file.name for file in medication.iterdir()}
    assert kbgate("calibrate", medication, "--repeats", 1) == 0
    said = capsys.readouterr().out
    assert "0 cases changed sides" in said
    assert "false alarms as observed: contract@5 0.0 %, newly_failing 0.0 %, canaries 0.0 %, any 0.0 %" in said
    assert "proposed noise ceiling" in said
    assert re.search(r"one question takes to embed: p50 \d+\.\d ms, p95 .*, p99 .* \(n = 200\)", said)
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
    said = capsys.readouterr().out.split("\n")[0]
    assert "none, every figure is the same" not in said
