"""Which suite it is, among others of its name: a lineage id, made when its first scores were accepted, and its folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.records import digest, parse_json, read_text
from kbgate.tasks.settings import Suite

_SUMMARY = "baseline.json"
HASH = 8
"""Digits of the hash behind a name."""
EVENTS = "kbgate.suite."
"""What stands before a suite's folder in events: whoever tells of an ingest may not have the suite."""


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
        return f"{self.suite}-{digest([self.lineage, self.folder], HASH)}"

    @property
    def keys(self) -> tuple[str, ...]:
        """Where its past stands, oldest first: the first acceptance gives another key to what its folder was until then."""
        return tuple(dict.fromkeys((replace(self, lineage="").key, self.key)))

    @property
    def archive(self) -> str:
        """The name of the cards it has seen, which are found by their content: a copy of a suite shares what it began with."""
        return f"{self.suite}-{digest(self.lineage or self.folder, HASH)}"

    @property
    def archives(self) -> tuple[str, ...]:
        """Where cards it has seen are kept: by its folder until the first acceptance, by the bare name with an older kbgate."""
        return tuple(dict.fromkeys((self.archive, replace(self, lineage="").archive, self.suite)))


def identity_of(suite: Suite) -> Identity:
    """Who a suite is, as its own baseline and its folder say; raises `InputError` where the baseline cannot be read."""
    return Identity(suite.name, _lineage_of(suite.folder), folder_of(suite.folder))


def runs_of(home: Path, suite: Suite) -> Path:
    """The folder that a suite's next run goes to."""
    return home / "runs" / identity_of(suite).key


def run_folder(home: Path, suite: Suite, run: str) -> Path:
    """The folder of one run in a suite's history; it may not be there."""
    *before, now = (home / "runs" / key / run for key in identity_of(suite).keys)
    return next((folder for folder in before if folder.is_dir()), now)


def _lineage_of(folder: Path) -> str:
    """What the baseline says; "" where there is none, and for one of an older kbgate."""
    if not (folder / _SUMMARY).exists():
        return ""
    try:
        content = parse_json(read_text(folder / _SUMMARY))
    except ValueError as error:
        raise InputError([Problem(_SUMMARY, 0, f"is not valid JSON ({error})")]) from None
    lineage = content.get("lineage", "") if isinstance(content, dict) else ""
    return lineage if isinstance(lineage, str) else ""


def folder_of(folder: Path) -> str:
    """A suite's folder from the root of its repository; outside of one, where it really is."""
    real = folder.resolve()
    root = next((parent for parent in (real, *real.parents) if (parent / ".git").exists()), None)
    return (real if root is None else real.relative_to(root)).as_posix()


def new_lineage() -> str:
    """An id no other suite has."""
    return uuid4().hex
