"""Which suite it is, among others of its name: a lineage id, made when its first scores were accepted, and its folder."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from kbgate.tasks.settings import Suite


def folder_of(suite: Suite) -> str:
    """A suite's folder from the root of its repository; outside of one, where it really is."""
    real = Path(suite.folder).resolve()
    root = next((folder for folder in (real, *real.parents) if (folder / ".git").exists()), None)
    return (real if root is None else real.relative_to(root)).as_posix()


def new_lineage() -> str:
    """An id no other suite has."""
    return uuid4().hex
