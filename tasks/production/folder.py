"""Production in a folder: the file CURRENT beside one folder per build.

CURRENT is replaced in one step (write, fsync, replace, fsync the folder). A second process with a client open on a folder sees
new counts and old query results, so builds never share one.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from kbgate.tasks.index.store import close_store
from kbgate.tasks.production.pointer import NOTHING_SERVED, Pointer, is_build, parse
from kbgate.tasks.records import write_text

POINTER = "CURRENT"


class FolderProduction:
    """A folder: CURRENT, and versions/<build>/, each a Chroma store of its own."""

    def __init__(self, home: Path, suite: str):
        self.home, self._suite = home, suite

    def read(self) -> Pointer:
        """The pointer in CURRENT."""
        file = self.home / POINTER
        return parse(file.read_bytes(), str(file), self._suite) if file.exists() else NOTHING_SERVED

    def move(self, pointer: Pointer) -> None:
        """Replace CURRENT."""
        write_text(self.home / POINTER, json.dumps(pointer.plain(), indent=2, sort_keys=True) + "\n")

    def place(self, build: str) -> str:
        """The folder of a build."""
        return str(self.home / "versions" / build)

    def builds(self) -> list[str]:
        """The folders that are there."""
        folder = self.home / "versions"
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted(name for name in names if is_build(name, self._suite))

    def discard(self, build: str) -> None:
        """Remove a build's folder."""
        close_store(self.place(build))
        shutil.rmtree(self.place(build), ignore_errors=True)
