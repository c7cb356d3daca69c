"""What calibrate states is what the gate does: the rates by the real gate over simulated nights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tasks.comparison import compare
from tasks.domain import Exam, Scores
from tasks.gate import judge
from tasks.statistics import Floats
from tasks.studies.calibration import agreement, detectable, false_alarms
from tests.conftest import edit_text
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


def judged(exam: Exam, noise: Callable[[Floats], Floats]) -> bool:
    """Whether the real gate blocks when the contract of each case is moved by noise."""
    figures = exam.scores.figures.copy()
    own = figures["metric"] == "contract@3"
    values = figures.loc[own, "value"].to_numpy()
    figures.loc[own, "value"] = np.round(np.clip(values + noise(values), 0, 1), 6)
    scores = Scores(figures, exam.scores.placements)
    comparison = compare(exam.suite, exam.golden, exam.asked, exam.run, scores, exam.baseline)
    return judge(Exam(**{**vars(exam), "scores": scores, "comparison": comparison})).name == "BLOCK"


@pytest.mark.slow
@pytest.mark.parametrize(("deviation", "tolerance"), [(0.01, 0.0005), (0.05, 0.02), (0.1, 0.04)])
def test_the_gate_blocks_as_often_as_calibrate_prints(deviation: float, tolerance: float, desk: Desk) -> None:
    """Noise at the ceiling of a range only ever lowers a mean: calibrate must count that in, as the gate does."""
    exam = nightly(desk, tolerance)
    own = exam.scores.figures
    table = own[own["lane"] == "exact"].pivot(index="case", columns="metric", values="value")
    stated = false_alarms(exam.suite, table, {}, deviation)["any"]
    draw, nights = np.random.default_rng(4), 600
    blocked = sum(judged(exam, lambda values: draw.normal(0, deviation, len(values))) for _ in range(nights)) / nights
    assert blocked == pytest.approx(stated, abs=0.02 + 2 * (stated * (1 - stated) / nights) ** 0.5)


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


def test_calibrate_says_what_a_verdict_is_worth_and_writes_only_when_told(
    medication: Path, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file.name for file in medication.iterdir()}
    assert kbgate("calibrate", medication, "--repeats", 1) == 0
    said = capsys.readouterr().out
    assert "0 cases changed sides" in said
    assert "false alarms as observed: contract@5 0.0 %, newly_failing 0.0 %, any 0.0 %" in said
    assert "proposed noise ceiling" in said
    assert {file.name for file in medication.iterdir()} == before
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
