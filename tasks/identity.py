"""Which suite it is: two of one name share nothing, neither production nor runs, history or cards.

A suite is known by its lineage, an id made when its first scores were accepted, and by its folder. Before that the folder
alone counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from kbgate.tasks.domain import Baseline
from kbgate.tasks.records import digest
from kbgate.tasks.settings import Suite

_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Identity:
    """One suite among all of its name."""

    suite: str
    lineage: str
    """"" before the first acceptance."""
    folder: str
    """From the root of its repository; outside of one, where it really is."""

    @property
    def key(self) -> str:
        """Its name where others of its name may stand beside it: the readable name and a hash."""
        return f"{self.suite}-{digest([self.lineage, self.folder], _LENGTH)}"


def identity_of(suite: Suite, baseline: Baseline | None) -> Identity:
    """Who a suite is, as its baseline and its folder say."""
    return Identity(suite.name, baseline.summary.lineage if baseline else "", folder_of(suite))


def folder_of(suite: Suite) -> str:
    """A suite's folder from the root of its repository; outside of one, where it really is."""
    real = Path(suite.folder).resolve()
    root = next((folder for folder in (real, *real.parents) if (folder / ".git").exists()), None)
    return (real if root is None else real.relative_to(root)).as_posix()


def new_lineage() -> str:
    """An id no other suite has."""
    return uuid4().hex
