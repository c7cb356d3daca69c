"""Real servers for the tests that are about them: loopback, a free port, an empty home, stopped by their own pid."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

COMMANDS = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[Any], log: Path, environment: Mapping[str, str], cwd: Path | None = None) -> Iterator[None]:
    """A process and its children, for as long as the block lasts."""
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(word) for word in command],
            env={**os.environ, **environment},
            stdout=file,
            stderr=file,
            cwd=cwd,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=20)


def wait_for(url: str, log: Path, seconds: float = 90) -> None:
    for _ in range(int(seconds * 2)):
        try:
            if httpx.get(url, timeout=2).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    raise AssertionError(f"{url} did not come up: {log.read_text()[-2000:]}")


@contextmanager
def prefect_server(home: Path) -> Iterator[str]:
    port = free_port()
    environment = {"PREFECT_HOME": str(home), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    command = [COMMANDS / "prefect", "server", "start", "--host", "127.0.0.1", "--port", port]
    with running(command, home / "server.log", environment):
        wait_for(f"http://127.0.0.1:{port}/api/health", home / "server.log")
        yield f"http://127.0.0.1:{port}/api"


@contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    port = free_port()
    command = [COMMANDS / "chroma", "run", "--path", folder / "data", "--host", "127.0.0.1", "--port", port]
    with running(command, folder / "chroma.log", {"ANONYMIZED_TELEMETRY": "False"}):
        wait_for(f"http://127.0.0.1:{port}/api/v2/heartbeat", folder / "chroma.log")
        yield f"http://127.0.0.1:{port}"


def post(url: str, body: Any) -> httpx.Response:
    """POST, again while the server's SQLite is busy (503), as Prefect's own client does."""
    for _ in range(20):
        answer = httpx.post(url, json=body, timeout=30)
        if answer.status_code != 503:
            return answer
        time.sleep(0.5)
    return answer
