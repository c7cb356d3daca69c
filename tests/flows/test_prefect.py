"""The same exam as a Prefect flow, against a real server on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import MEDICATION, ROOT, edit_lines
from tests.servers import COMMANDS, free_port

pytestmark = pytest.mark.slow
STAGES = {
    "load suite", "load cards", "load golden set", "restore baseline", "check inputs", "chunk", "identify model", "embed",
    "embed questions", "ingest", "retrieve", "score", "compare", "judge", "write files",
}  # fmt: skip


def evaluate(suite: Path, api: str, home: Path, *more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PREFECT_API_URL": api, "PREFECT_HOME": str(home / "prefect"), "KBGATE_HOME": str(home)}
    return subprocess.run([COMMANDS / "kbgate", "evaluate", suite, *more], env=environment, capture_output=True, text=True)


def newest(api: str, kind: str, **filters: Any) -> list[dict[str, Any]]:
    order = {"flow_runs": "EXPECTED_START_TIME_DESC", "task_runs": "EXPECTED_START_TIME_DESC", "artifacts": "CREATED_DESC"}[
        kind
    ]
    found: list[dict[str, Any]] = httpx.post(f"{api}/{kind}/filter", json={"sort": order, **filters}, timeout=30).json()
    return found


def test_an_exam_is_a_flow_run_with_a_task_run_per_stage_and_its_report(api: str, home: Path) -> None:
    done = evaluate(MEDICATION, api, home, "--fast")
    assert done.returncode == 0, done.stderr[-3000:]
    run = newest(api, "flow_runs")[0]
    assert (run["state"]["type"], run["state"]["name"]) == ("COMPLETED", "Pass")
    assert run["name"].startswith("evaluate medication ")
    assert {"suite:medication", "verdict:PASS"} <= set(run["tags"])
    for _ in range(40):
        tasks = newest(api, "task_runs", flow_runs={"id": {"any_": [run["id"]]}})
        if len(tasks) == len(STAGES):
            break
        time.sleep(0.5)
    assert {task["name"].rsplit("-", 1)[0] for task in tasks} == STAGES
    assert {task["state"]["type"] for task in tasks} == {"COMPLETED"}
    report = newest(api, "artifacts")[0]
    assert report["key"] == "kbgate-medication"
    assert report["data"].startswith("# PASS: ")


def test_a_blocked_exam_is_a_failed_state_named_blocked_and_runs_once(api: str, home: Path, medication: Path) -> None:
    edit_lines(medication / "cards.jsonl", lambda card: None if card["id"] == "epilepsy-missed" else card)
    before = len(newest(api, "flow_runs"))
    done = evaluate(medication, api, home)
    assert done.returncode == 1, done.stderr[-3000:]
    runs = newest(api, "flow_runs")
    assert len(runs) == before + 1
    assert (runs[0]["state"]["type"], runs[0]["state"]["name"]) == ("FAILED", "Blocked")
    assert "card 'epilepsy-missed'" in runs[0]["state"]["message"]
    assert runs[0]["run_count"] == 1


def test_bad_input_keeps_its_exit_code_and_sentence(api: str, home: Path, medication: Path) -> None:
    (medication / "cards.jsonl").write_text("{\n")
    done = evaluate(medication, api, home)
    assert done.returncode == 2
    assert "kbgate: bad input: cards.jsonl:1: is not valid JSON" in done.stderr
    assert newest(api, "flow_runs")[0]["state"]["type"] == "FAILED"


def test_an_api_that_cannot_be_reached_is_four_and_never_a_silent_fall_back(home: Path) -> None:
    runs = home / "runs" / "medication"
    before = set(runs.iterdir()) if runs.exists() else set()
    done = evaluate(MEDICATION, f"http://127.0.0.1:{free_port()}/api", home)
    assert done.returncode == 4
    assert "Failed to reach API" in done.stderr
    assert (set(runs.iterdir()) if runs.exists() else set()) == before


RETRIED = """
import sys
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from flows.evaluate import evaluate
with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
    state = evaluate.with_options(retries=2, retry_delay_seconds=0)(suite=sys.argv[1], home=sys.argv[2], return_state=True)
print(state.name, state.type.value)
"""


def test_a_block_with_retries_configured_runs_the_exam_once(api: str, home: Path, medication: Path, tmp_path: Path) -> None:
    edit_lines(medication / "cards.jsonl", lambda card: None if card["id"] == "epilepsy-missed" else card)
    own = tmp_path / "own-home"
    shutil.copytree(home / "vectors", own / "vectors")
    environment = {**os.environ, "PREFECT_API_URL": api, "PREFECT_HOME": str(tmp_path / "prefect")}
    command = [sys.executable, "-c", RETRIED, medication, own]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert "Blocked FAILED" in done.stdout, done.stderr[-3000:]
    assert len(list((own / "runs" / "medication").iterdir())) == 1
    assert newest(api, "flow_runs")[0]["run_count"] == 1
