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

from kbgate.tasks.identity import identity_of
from kbgate.tasks.inputs.suite import load_suite
from tests.conftest import MEDICATION, ROOT, edit_lines, read_lines, runs_in
from tests.servers import COMMANDS, free_port, post, running

pytestmark = pytest.mark.slow
STAGES = {
    "load suite", "load cards", "load golden set", "restore baseline", "check inputs", "chunk", "identify model", "embed",
    "embed questions", "ingest", "retrieve", "score and compare", "judge", "diagnose", "write files",
    "embed a sample again",
}  # fmt: skip
EDGES = {
    "load suite": set(),
    "load cards": {"load suite"},
    "load golden set": {"load suite"},
    "restore baseline": {"load suite"},
    "check inputs": {"load suite", "load cards", "load golden set", "restore baseline"},
    "chunk": {"load suite", "load cards"},
    "identify model": {"load suite"},
    "embed": {"load suite", "identify model"},
    "embed questions": {"load suite", "identify model"},
    "ingest": {"load suite", "embed"},
    "retrieve": {"load suite", "ingest", "embed questions"},
    "score and compare": {"retrieve", "check inputs", "load suite", "load cards", "load golden set", "restore baseline"},
    "diagnose": {"embed questions", "score and compare", "load golden set", "identify model"},
    "embed a sample again": {"identify model"},
    "judge": {"score and compare"},
    "write files": {"judge", "diagnose", "score and compare"},
}
"""What each stage of a fast exam of the bundled suite must say it came from: its arguments, and the fields of those that are
records. Prefect knows results by their address, so that a shared small value may name a stage more."""


def evaluate(suite: Path, api: str, home: Path, *more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PREFECT_API_URL": api, "PREFECT_HOME": str(home / "prefect"), "KBGATE_HOME": str(home)}
    return subprocess.run([COMMANDS / "kbgate", "evaluate", suite, *more], env=environment, capture_output=True, text=True)


def newest(api: str, kind: str, **filters: Any) -> list[dict[str, Any]]:
    order = {"flow_runs": "EXPECTED_START_TIME_DESC", "task_runs": "EXPECTED_START_TIME_DESC", "artifacts": "CREATED_DESC"}[
        kind
    ]
    if kind == "flow_runs":  # a deployment's schedule has runs in waiting
        filters["flow_runs"] = {"state": {"type": {"not_any_": ["SCHEDULED"]}}}
    found: list[dict[str, Any]] = post(f"{api}/{kind}/filter", {"sort": order, **filters}).json()
    return found


def test_an_exam_is_a_flow_run_with_a_task_run_per_stage_and_its_report(api: str, home: Path) -> None:
    done = evaluate(MEDICATION, api, home, "--fast")
    assert done.returncode == 0, done.stderr[-3000:]
    run, key = newest(api, "flow_runs")[0], identity_of(load_suite(MEDICATION)).key
    assert (run["state"]["type"], run["state"]["name"]) == ("COMPLETED", "Pass")
    assert run["name"].startswith(f"evaluate {key} ")
    assert {"suite:medication", "verdict:PASS"} <= set(run["tags"])
    tasks = tasks_of(api, run, len(STAGES))
    assert {stage_of(task) for task in tasks} == STAGES
    assert {task["state"]["type"] for task in tasks} == {"COMPLETED"}
    edges = edges_of(tasks)
    assert set(edges) == set(EDGES)
    assert {stage: sorted(needed - edges[stage]) for stage, needed in EDGES.items() if needed - edges[stage]} == {}
    assert sum(len(needed & edges[stage]) for stage, needed in EDGES.items()) == 34
    report = newest(api, "artifacts")[0]
    assert report["key"] == f"kbgate-{key}"
    assert report["data"].startswith("# PASS: ")
    assert a_verdict_event(api)["resource"]["prefect.resource.id"] == "kbgate.suite.baselines/medication"


def tasks_of(api: str, run: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The task runs of a flow run; they arrive after it has ended."""
    for _ in range(40):
        tasks = newest(api, "task_runs", flow_runs={"id": {"any_": [run["id"]]}})
        if len(tasks) == count:
            break
        time.sleep(0.5)
    return tasks


def stage_of(task: dict[str, Any]) -> str:
    return str(task["name"]).rsplit("-", 1)[0]


def edges_of(tasks: list[dict[str, Any]]) -> dict[str, set[str]]:
    """The graph as the server shows it: by stage, the stages its arguments came from.

    Prefect knows a result by its address. The chunks are the one result that is let go while the exam goes on, and that no
    stage is given: an edge from them says that their address was taken again.
    """
    names = {task["id"]: stage_of(task) for task in tasks}
    came_from = {stage_of(task): [one for several in task["task_inputs"].values() for one in several] for task in tasks}
    return {stage: {names[one["id"]] for one in inputs} - {"chunk"} for stage, inputs in came_from.items()}


def a_verdict_event(api: str) -> dict[str, Any]:
    """The event of the fast exam that passed, among those of other tests."""
    for _ in range(60):
        wanted = {"filter": {"event": {"name": ["kbgate.verdict"]}}, "limit": 50}
        for event in post(f"{api}/events/filter", wanted).json()["events"]:
            if (event["payload"]["mode"], event["payload"]["verdict"]) == ("fast", "PASS"):
                found: dict[str, Any] = event
                return found
        time.sleep(0.5)
    raise AssertionError("no kbgate.verdict event arrived")


def test_a_suite_that_errs_makes_the_night_fail(api: str, home: Path, tmp_path: Path) -> None:
    for name in ("broken", "fine"):
        shutil.copytree(MEDICATION, tmp_path / "suites" / name)
    (tmp_path / "suites" / "broken" / "golden.jsonl").write_text("{\n")
    environment = {**os.environ, "PREFECT_API_URL": api, "PREFECT_HOME": str(home / "prefect"), "KBGATE_HOME": str(home)}
    command = [COMMANDS / "kbgate", "nightly", "--folder", tmp_path / "suites"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr[-3000:]
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ERROR", "WARN"]
    states = {run["name"].split()[0]: run["state"] for run in newest(api, "flow_runs")[:3][::-1]}
    night = next(run for run in newest(api, "flow_runs") if run["parameters"].get("folder"))
    assert (night["state"]["type"], night["state"]["name"]) == ("FAILED", "Unmeasured"), states
    assert any(artifact["key"] == "kbgate-nightly" for artifact in newest(api, "artifacts"))


def test_serve_is_the_same_without_a_worker(api: str, home: Path, tmp_path: Path) -> None:
    shutil.copytree(MEDICATION, tmp_path / "baselines" / "medication")
    environment = {"PREFECT_API_URL": api, "PREFECT_HOME": str(tmp_path / "prefect"), "KBGATE_HOME": str(home)}
    environment |= {"PREFECT_RUNNER_POLL_FREQUENCY": "2"}
    nights = len(read_lines(home / "nightly.jsonl")) if (home / "nightly.jsonl").exists() else 0
    with running([COMMANDS / "kbgate", "serve"], tmp_path / "serve.log", environment, cwd=tmp_path):
        for _ in range(120):
            found = httpx.get(f"{api}/deployments/name/nightly/nightly", timeout=30)
            if found.status_code == 200 and found.json()["parameters"] == {"folder": "baselines"}:
                break
            time.sleep(0.5)
        assert found.json()["schedules"][0]["schedule"]["cron"] == "30 2 * * *", (tmp_path / "serve.log").read_text()
        url = f"{api}/deployments/{found.json()['id']}/create_flow_run"
        created = post(url, {"parameters": {"folder": "baselines"}})
        assert created.status_code == 201, created.text
        started = created.json()
        for _ in range(180):
            run = httpx.get(f"{api}/flow_runs/{started['id']}", timeout=30).json()
            if run["state"]["type"] in ("COMPLETED", "FAILED", "CRASHED"):
                break
            time.sleep(0.5)
    assert (run["state"]["type"], run["state"]["name"]) == ("COMPLETED", "Warn"), (tmp_path / "serve.log").read_text()[-3000:]
    assert (len(read_lines(home / "nightly.jsonl")), (tmp_path / ".kbgate").exists()) == (nights + 1, False)


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
    before = runs_in(home)
    done = evaluate(MEDICATION, f"http://127.0.0.1:{free_port()}/api", home)
    assert done.returncode == 4
    assert "Failed to reach API" in done.stderr
    assert runs_in(home) == before


RETRIED = """
import sys
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from kbgate.flows.evaluate import evaluate
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
    assert len(runs_in(own)) == 1
    assert newest(api, "flow_runs")[0]["run_count"] == 1


WALKED = """
from dataclasses import dataclass, fields
from prefect import flow, task
from kbgate.tasks import stages

LOOKS = []

@dataclass(frozen=True)
class Watched:
    id: str
    def __getattribute__(self, name):
        LOOKS.append(name)
        return object.__getattribute__(self, name)

@dataclass(frozen=True, slots=True)
class Cards:
    cards: dict[str, Watched]

def load():
    return Cards({f"c{n}": Watched(f"c{n}") for n in range(10_000)})

def count(cards, also):
    return len(cards.cards) + len(also.cards)

def looks_of(counting):
    @flow
    def body():
        cards = stages.stage("load watched cards", load)()
        LOOKS.clear()
        assert counting(cards, also=cards) == 20_000
        return len(LOOKS)
    return body()

print("bare", looks_of(task(count)) >= 10_000, "stage", looks_of(stages.stage("count watched cards", count)))
"""


def test_a_stage_that_is_given_ten_thousand_records_is_not_walked(api: str, tmp_path: Path) -> None:
    """Records that notice being looked at: a bare task looks at each, a stage at none and yet says where they came from."""
    environment = {**os.environ, "PREFECT_API_URL": api, "PREFECT_HOME": str(tmp_path / "prefect")}
    command = [sys.executable, "-c", WALKED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["bare", "True", "stage", "0"], done.stdout + done.stderr[-3000:]
    tasks = tasks_of(api, newest(api, "flow_runs")[0], 2)
    assert edges_of(tasks) == {"load watched cards": set(), "count watched cards": {"load watched cards"}}


FOREIGN = """
import sys
from prefect import flow
from kbgate.flows import evaluate
print(flow(evaluate.run)(suite=sys.argv[1], home=sys.argv[2], return_state=True).type.value)
"""


def test_a_body_that_someone_else_makes_a_flow_of_is_never_green(
    api: str, home: Path, medication: Path, tmp_path: Path
) -> None:
    environment = {**os.environ, "PREFECT_API_URL": api, "PREFECT_HOME": str(tmp_path / "prefect")}
    command = [sys.executable, "-c", FOREIGN, medication, home]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip().endswith("FAILED"), done.stderr[-3000:]
    assert "deploy flows.<name>.<name>, not its body" in done.stderr
