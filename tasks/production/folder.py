"""Production in a folder: the file CURRENT beside one folder per build.

CURRENT is replaced in one step (write, fsync, replace, fsync the folder). A second process with a client open on a folder sees
new counts and old query results, so builds never share one.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from kbgate.tasks.errors import Overtaken, Problem, Refused
from kbgate.tasks.index.store import close_store
from kbgate.tasks.production.lock import LOCK_WAIT_S, kernel_lock
from kbgate.tasks.production.pointer import NOTHING_SERVED, Pointer, is_build, parse
from kbgate.tasks.records import write_text

POINTER = "CURRENT"
VERSIONS = "versions"
_ADVICE = "restore it: the builds beside it are untouched"


class FolderProduction:
    """A folder: CURRENT, and versions/<build>/, each a Chroma store of its own."""

    def __init__(self, home: Path, suite: str, take_over: bool = False):
        self.home, self.suite, self._take_over = home, suite, take_over

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """A lock of the kernel: it is gone with the process that held it, however that one ended."""
        with kernel_lock(self.home / ".lock", LOCK_WAIT_S, "another promotion holds"):
            yield

    def read(self) -> Pointer:
        """The pointer in CURRENT."""
        file = self.home / POINTER
        if not file.exists():
            return NOTHING_SERVED
        pointer = parse(file.read_bytes(), str(file), self.suite, _ADVICE, self._take_over)
        for target in (pointer.target, *pointer.previous):
            if target and target.place != f"{VERSIONS}/{target.build}":
                sentence = f"says that {target.build} is at '{target.place}', not at {VERSIONS}/{target.build}; {_ADVICE}"
                raise Refused(str(Problem(str(file), 0, sentence)))
        return pointer

    def move(self, pointer: Pointer) -> None:
        """Replace CURRENT."""
        if self.read().token != (pointer.move.after if pointer.move else ""):
            raise Overtaken(f"{self.home / POINTER} was replaced while this promotion held the lock; see kbgate status")
        write_text(self.home / POINTER, json.dumps(pointer.plain(), indent=2, sort_keys=True) + "\n")

    def fence(self, now: dt.datetime) -> Pointer | None:
        """Nothing: whoever lost the kernel's lock is dead."""
        return None

    def settle(self) -> None:
        """Nothing: CURRENT is all there is."""

    def claim(self, build: str) -> None:
        """Nothing: while the lock is held no other promotion looks."""

    def place(self, build: str) -> str:
        """The folder of a build."""
        return str(self.home / VERSIONS / build)

    def builds(self) -> list[str]:
        """The folders that are there."""
        folder = self.home / VERSIONS
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted(name for name in names if is_build(name, self.suite))

    def leftovers(self) -> list[str]:
        """The folders that CURRENT does not name."""
        return [build for build in self.builds() if build not in self.read().builds]

    def discard(self, build: str) -> None:
        """Remove a build's folder."""
        if build not in self.read().builds:
            close_store(self.place(build))
            shutil.rmtree(self.place(build), ignore_errors=True)
