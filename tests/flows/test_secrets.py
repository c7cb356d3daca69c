"""Whatever a failing run leaves is searched for the secrets it was given: in URLs, headers, the environment."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import edit_text, write_lines, write_suite
from tests.servers import COMMANDS, free_port, post

pytestmark = pytest.mark.slow
SECRET = "sk-live-do-not-print"
GIVEN = {
    "KBGATE_KEY": f"{SECRET}-key",
    "OPENAI_API_KEY": f"{SECRET}-openai",
    "HF_TOKEN": f"{SECRET}-hub",
    "AWS_SECRET_ACCESS_KEY": f"{SECRET}-aws",
    "CHROMA_SERVER_AUTHN_CREDENTIALS": f"{SECRET}-chroma",
    "PREFECT_CLIENT_CUSTOM_HEADERS": json.dumps({"X-Token": f"{SECRET}-header"}),
}
TEXTS = {f"c{n}": f"word{n} and text{n}" for n in range(4)}


def run(api: str, place: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    places = {"PREFECT_API_URL": api, "PREFECT_HOME": str(place / "prefect"), "KBGATE_HOME": str(place / "home")}
    environment = {**os.environ, **GIVEN, **places}
    command = [COMMANDS / "kbgate", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=place)


def kept(api: str) -> str:
    """Everything the server keeps: runs with their states, logs, artifacts, events."""
    time.sleep(3)  # logs and events arrive after a run has ended
    told = ""
    for kind in ("flow_runs", "task_runs", "logs", "artifacts"):
        for offset in range(0, 2000, 200):
            page: list[Any] = post(f"{api}/{kind}/filter", {"limit": 200, "offset": offset}).json()
            told += json.dumps(page)
            if len(page) < 200:
                break
    return told + post(f"{api}/events/filter", {"filter": {}, "limit": 50}).text


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "words", "bm25", TEXTS)


@pytest.mark.parametrize("url", [f"http://user:{SECRET}-pw@127.0.0.1:9", f"http://127.0.0.1:9/?token={SECRET}-query"])
def test_no_secret_of_a_url_is_told(url: str, api: str, suite: Path, tmp_path: Path) -> None:
    edit_text(suite / "suite.toml", "[kb]", f'[production]\nurl = "{url}"\n[kb]')
    said = ""
    for command in (["--debug", "promote"], ["nightly"]):
        done = run(api, tmp_path, *command, suite)
        assert done.returncode == (4 if "--debug" in command else 2), done.stderr[-2000:]
        said += done.stdout + done.stderr
    assert "production.url: " in said
    search(tmp_path, suite, said + kept(api))


def test_nor_is_one_of_the_environment_or_of_a_header(api: str, suite: Path, tmp_path: Path) -> None:
    done = run(api, tmp_path, "baseline", "update", suite, "--reason", "first")
    assert done.returncode == 0, done.stderr[-2000:]
    write_lines(suite / "cards.jsonl", [{"id": name, "text": "gone"} for name in TEXTS])
    said = ""
    for command, code in ((["evaluate", "--json"], 1), (["promote"], 1), (["nightly"], 1)):
        done = run(api, tmp_path, *command, suite)
        assert done.returncode == code, done.stderr[-2000:]
        said += done.stdout + done.stderr
    edit_text(suite / "suite.toml", "[kb]", f'[production]\nurl = "http://127.0.0.1:{free_port()}"\n[kb]')
    done = run(api, tmp_path, "--debug", "promote", suite)
    assert done.returncode == 4, done.stderr[-2000:]
    said += done.stdout + done.stderr
    assert list((tmp_path / "home").rglob("verdict.json"))
    search(tmp_path, suite, said + kept(api))


def search(place: Path, suite: Path, told: str) -> None:
    """No secret stands in what was told, nor in a file but the one that was given it."""
    assert SECRET not in told, told[max(told.index(SECRET) - 300, 0) : told.index(SECRET) + 100]
    files = [path for path in place.rglob("*") if path.is_file() and path != suite / "suite.toml"]
    assert files
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
