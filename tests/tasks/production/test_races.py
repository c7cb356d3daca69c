"""Two promoters on one Chroma server, from two temporary folders, one of them stopped for longer than its lease."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.index.store import close_store, connect, no_embedder
from kbgate.tasks.production import resolve
from kbgate.tasks.production.pointer import is_build
from kbgate.tasks.production.series import look
from kbgate.tasks.production.server import head
from tests.conftest import ROOT, read_lines
from tests.servers import chroma_server
from tests.tasks.production.builds import ROWS

ROUNDS = int(os.environ.get("KBGATE_ROUNDS", "6"))
BEAT_S = 0.2
ASLEEP_S = 1.2
"""How long a promoter is stopped: twice its lease."""


class Promoter:
    """A promoter's process."""

    def __init__(self, folder: Path, url: str):
        folder.mkdir()
        self.home = folder / "home"
        command = [sys.executable, "-m", "tests.tasks.production.promoter", folder, url, BEAT_S, 0.05]
        environment = {**os.environ, "TMPDIR": str(folder)}
        words = [str(word) for word in command]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
        )
        assert self._line() == {"ready": True}

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line: dict[str, Any] = json.loads(self.process.stdout.readline())
        return line

    def start(self, what: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()

    def wait_until_stopped(self) -> None:
        os.waitpid(self.process.pid, os.WUNTRACED)

    def wake(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def outcome(self) -> dict[str, Any]:
        return self._line()

    def end(self) -> None:
        self.wake()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()
        self.process.wait(20)


class Reader(threading.Thread):
    """Reads what is served, again and again, as anybody does; counts reads, and keeps what failed."""

    def __init__(self, url: str):
        super().__init__(daemon=True)
        self.url, self.reads, self.failures, self.done = url, 0, list[str](), threading.Event()

    def run(self) -> None:
        client = connect(self.url)
        while not self.done.is_set():
            try:
                target, _ = resolve(self.url, "desk")
                rows = client.get_collection(target.build, embedding_function=no_embedder()).get()["ids"]
                assert len(rows) == ROWS, f"{target.build} has {len(rows)} rows"
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {error}")
            self.reads += 1
        client.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with chroma_server(tmp_path) as url:
        yield url
        close_store(url)


@contextlib.contextmanager
def reading(url: str) -> Iterator[Reader]:
    reader = Reader(url)
    reader.start()
    try:
        yield reader
    finally:
        reader.done.set()
        reader.join(20)


@pytest.mark.slow
def test_two_machines_one_of_them_stopped_lose_nothing(server: str, tmp_path: Path) -> None:
    promoters = [Promoter(tmp_path / name, server) for name in ("a", "b")]
    client, outcomes = connect(server), []
    try:
        promoters[0].start("promote")
        outcomes.append(promoters[0].outcome())
        with reading(server) as reader:
            for number in range(ROUNDS):
                stopped, other = promoters if number % 2 else promoters[::-1]
                stopped.start("stop")
                stopped.wait_until_stopped()
                other.start("promote")
                time.sleep(ASLEEP_S if number % 3 else 0.75)  # sometimes it wakes while the other one is at work
                stopped.wake()
                outcomes += [stopped.outcome(), other.outcome()]
                listing = look(client, server)
                pointer = head(listing, server, "desk")
                builds = {name for name in listing if is_build(name, "desk")}
                assert builds == pointer.builds, "a build is missing, or one that came to nothing is there"
                assert len(pointer.previous) == min(3, sum(outcome["exit"] == 0 for outcome in outcomes) - 1)
                assert pointer.served in {outcome["build"] for outcome in outcomes[-2:] if outcome["exit"] == 0}
        counts = [client.get_collection(build, embedding_function=no_embedder()).count() for build in builds]
    finally:
        for promoter in promoters:
            promoter.end()
        client.close()
    print(f"{ROUNDS} rounds, {reader.reads} reads, {Counter((o['exit'], o['said'][:9]) for o in outcomes)}, {pointer.number}")
    assert reader.failures == []
    assert counts == [ROWS] * len(counts)
    assert {outcome["exit"] for outcome in outcomes} == {0, 4}
    assert all("Overtaken" in outcome["said"] for outcome in outcomes if outcome["exit"])
    let_in = {outcome["build"] for outcome in outcomes if outcome["exit"] == 0}
    trails = [line for promoter in promoters for line in read_lines(promoter.home / "audit.jsonl")]
    assert {line["build"] for line in trails if line["action"] == "promoted"} == let_in
