"""The whole circle, unattended: a real Prefect server and worker, a knowledge base that changes, a door that stays shut.

Nightly runs to its end; documents that bury a gold come in, an event says so, the exam starts by itself and its BLOCK is read
back through the API; promotion is refused and the pointer keeps its bytes; the documents are mended, promotion passes, a
separate reader finds the new index; a rollback returns to the old one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kbgate.tasks.identity import identity_of
from kbgate.tasks.inputs.suite import load_suite
from tests.conftest import MEDICATION, ROOT
from tests.servers import COMMANDS, post, running

pytestmark = pytest.mark.slow

READER = """
import json, sys
from pathlib import Path
import chromadb
from chromadb.config import Settings
home = Path(sys.argv[1])
target = json.loads((home / "CURRENT").read_text())["target"]
client = chromadb.PersistentClient(path=str(home / target["place"]), settings=Settings(anonymized_telemetry=False))
print(target["build"], client.get_collection(target["build"], embedding_function=None).count())
"""


@pytest.fixture
def site(tmp_path: Path, home: Path) -> Path:
    """A checkout's working folder: one suite, and a vector cache that is warm."""
    shutil.copytree(MEDICATION, tmp_path / "site" / "baselines" / "medication")
    if (home / "vectors").exists():
        shutil.copytree(home / "vectors", tmp_path / "site" / "state" / "vectors")
    return tmp_path / "site"


@pytest.fixture
def environment(site: Path, api: str, tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ, "PREFECT_API_URL": api, "PREFECT_HOME": str(tmp_path / "prefect"), "KBGATE_ROOT": str(site),
        "KBGATE_HOME": "state", "PYTHONPATH": str(ROOT),
    }  # fmt: skip


@pytest.fixture
def kbgate_at(site: Path, environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, api: bool = False) -> subprocess.CompletedProcess[str]:
        own = {k: v for k, v in environment.items() if api or k != "PREFECT_API_URL"}
        return subprocess.run([COMMANDS / "kbgate", *arguments], cwd=site, env=own, capture_output=True, text=True)

    return run


@pytest.fixture
def worker(site: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[None]:
    def prefect(*arguments: str) -> None:
        done = subprocess.run([COMMANDS / "prefect", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    prefect("work-pool", "create", "kbgate", "--type", "process")
    prefect("--no-prompt", "deploy", "--prefect-file", "deploy/prefect.yaml", "--all")
    settings = {**environment, "PREFECT_WORKER_QUERY_SECONDS": "2"}
    command = [COMMANDS / "prefect", "worker", "start", "--pool", "kbgate", "--name", "test"]
    with running(command, tmp_path / "worker.log", settings, cwd=site):
        yield


def newest_run(api: str, flow: str) -> dict[str, Any]:
    """The newest run of a flow, whoever started it."""
    query = {"sort": "EXPECTED_START_TIME_DESC", "flows": {"name": {"any_": [flow]}}}
    found: dict[str, Any] = post(f"{api}/flow_runs/filter", query).json()[0]
    return found


def wait_for_run(api: str, deployment: str, seconds: float = 90, but: str = "") -> dict[str, Any]:
    """The newest flow run of a deployment, once it has ended; `but`: one that is known."""
    for _ in range(int(seconds * 2)):
        ended = {"state": {"type": {"any_": ["COMPLETED", "FAILED", "CRASHED", "CANCELLED"]}}}
        query = {"sort": "EXPECTED_START_TIME_DESC", "deployments": {"name": {"any_": [deployment]}}, "flow_runs": ended}
        found = post(f"{api}/flow_runs/filter", query).json()
        if found and found[0]["id"] != but:
            newest: dict[str, Any] = found[0]
            return newest
        time.sleep(0.5)
    raise AssertionError(f"{deployment} did not end within {seconds} s")


def log_of(api: str, run: dict[str, Any]) -> list[str]:
    """The lines of a flow run's log; the last ones arrive after it has ended."""
    for _ in range(40):
        found = post(f"{api}/logs/filter", {"logs": {"flow_run_id": {"any_": [run["id"]]}}, "limit": 200}).json()
        lines = [str(line["message"]) for line in found]
        if any("see the report" in line for line in lines):
            break
        time.sleep(0.5)
    return lines


def start(api: str, flow: str, deployment: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Start a deployment and wait until its run has ended."""
    found = httpx.get(f"{api}/deployments/name/{flow}/{deployment}", timeout=30).json()
    created = post(f"{api}/deployments/{found['id']}/create_flow_run", {"parameters": parameters})
    assert created.status_code in (200, 201), created.text
    for _ in range(180):
        run: dict[str, Any] = httpx.get(f"{api}/flow_runs/{created.json()['id']}", timeout=30).json()
        if run["state"]["type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED"):
            return run
        time.sleep(0.5)
    raise AssertionError(f"{deployment} did not end")


def bury(suite: Path, how_many: int = 12) -> None:
    """Documents that answer nothing and stand before the answer."""
    question = "How do I get off my depression tablets safely?"
    lines = [
        {"id": f"forum-{n}", "title": question, "text": f"{question} Thread {n}, no answers yet.", "language": "en",
         "metadata": {"audience": "public"}}
        for n in range(how_many)
    ]  # fmt: skip
    with (suite / "cards.jsonl").open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


def mend(suite: Path) -> None:
    kept = [line for line in (suite / "cards.jsonl").read_text().splitlines() if '"forum-' not in line]
    (suite / "cards.jsonl").write_text("\n".join(kept) + "\n")


def read_back(site: Path) -> str:
    """What a separate process finds behind the pointer."""
    (found,) = site.glob("state/production/medication-*")
    return subprocess.run([sys.executable, "-c", READER, found], capture_output=True, text=True, check=True).stdout


@pytest.mark.usefixtures("worker")
def test_the_circle(api: str, site: Path, kbgate_at: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    suite = site / "baselines" / "medication"
    pointer = site / "state" / "production" / identity_of(load_suite(suite)).key / "CURRENT"

    night = start(api, "nightly", "nightly", {"folder": "baselines"})
    assert (night["state"]["type"], night["state"]["name"]) == ("COMPLETED", "Warn"), night["state"]["message"]
    assert night["name"] == "nightly baselines"

    first = start(api, "promote", "promote", {"suite": "baselines/medication"})
    assert (first["state"]["type"], first["state"]["name"]) == ("COMPLETED", "Warn"), first["state"]["message"]
    assert "served: medication-" in kbgate_at("status", "baselines/medication").stdout
    assert not (site / ".kbgate").exists()
    old_bytes, old_build = pointer.read_bytes(), read_back(site)

    bury(suite)
    emitted = kbgate_at("ingested", "baselines/medication", "--batch", "evening-import", api=True)
    assert emitted.returncode == 0, emitted.stderr
    assert "deployment after-ingest in work pool kbgate will examine it" in emitted.stdout
    exam = wait_for_run(api, "after-ingest")
    assert (exam["state"]["type"], exam["state"]["name"]) == ("FAILED", "Blocked")
    assert "quit-mood-pill" in exam["state"]["message"]
    assert exam["state"]["data"] is None or "quit-mood-pill" not in json.dumps(exam["state"]["data"])
    lines = log_of(api, exam)
    assert not [line for line in lines if "Traceback" in line]
    assert sum("it ends as its verdict says: see the report" in line for line in lines) == 1
    assert sum(map(len, lines)) < 2_500, lines
    reports = [a for a in post(f"{api}/artifacts/filter", {}).json() if a["flow_run_id"] == exam["id"]]
    assert "evening\\-import" in reports[0]["data"] or "evening-import" in reports[0]["data"]
    assert "forum-0" in reports[0]["data"]

    again = kbgate_at("ingested", "baselines/medication", "--batch", "the same, told twice", api=True)
    assert again.returncode == 0, again.stderr
    twice = wait_for_run(api, "after-ingest", but=exam["id"])
    assert (twice["state"]["type"], twice["state"]["name"]) == ("FAILED", "Blocked")
    assert "nothing changed since run" in twice["state"]["message"]

    refused = kbgate_at("promote", "baselines/medication", api=True)
    assert refused.returncode == 1
    assert "production stays at medication-" in refused.stderr
    blocked = newest_run(api, "promote")
    assert (blocked["state"]["type"], blocked["state"]["name"]) == ("FAILED", "Blocked")
    assert pointer.read_bytes() == old_bytes
    assert read_back(site) == old_build

    mend(suite)
    with (suite / "cards.jsonl").open("a") as file:
        file.write(
            json.dumps({"id": "opening-hours", "text": "The pharmacy is open from eight to six.", "language": "en"}) + "\n"
        )
    passed = kbgate_at("promote", "baselines/medication")
    assert passed.returncode == 0, passed.stderr
    new_build = read_back(site)
    assert new_build.split()[0] != old_build.split()[0]
    assert int(new_build.split()[1]) == int(old_build.split()[1]) + 1

    returned = kbgate_at("rollback", "baselines/medication")
    assert returned.returncode == 0, returned.stderr
    assert read_back(site) == old_build
