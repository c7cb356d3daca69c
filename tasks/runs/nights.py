"""What each night came to, a line a night in nightly.jsonl, and which suites a night misses: by the last one, and by git.

A suite that is not there is never green. It leaves the list by a commit that took it away, which is told once, or by name.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.errors import InputError, Problem, Unmeasured, did_you_mean
from kbgate.tasks.git import answer_of, run_git, trouble_of
from kbgate.tasks.inputs.suite import MARKS, find_suites, is_looked_into, suites_of
from kbgate.tasks.outcomes import Night, NightlyRow
from kbgate.tasks.records import append_line, parse_json

FILE = "nightly.jsonl"


@dataclass(frozen=True, slots=True)
class Roll:
    """The suites under a folder: those that are there, and those that should be."""

    folder: str
    """Where it really is; "" where suites were named one by one."""
    suites: tuple[str, ...]
    """To be examined, as paths to type."""
    missed: tuple[NightlyRow, ...] = ()
    known: tuple[str, ...] = ()
    """What the next night must find, as paths from the folder."""


def append_night(home: Path, night: Night, roll: Roll) -> None:
    """Append a night, with the suites that the next one of the same folder must find."""
    rows = [{"suite": row.suite, "verdict": row.verdict, "exit_code": row.exit_code, "worst": row.worst} for row in night.rows]
    append_line(home / FILE, {"verdict": night.name, "rows": rows, "folder": roll.folder, "suites": [*roll.known]})


def call_the_roll(home: Path, folder: Path, forgotten: Sequence[str] = ()) -> Roll:
    """The suites under a folder beside those of the last night and those that git has.

    `forgotten`: suites, as paths from the folder or as they are typed, that are gone and meant to be.
    """
    real, there = folder.resolve(), find_suites(folder)
    found = {_from(folder, suite) for suite in there}
    committed, trouble = _committed(real)
    gone = set(_last_night(home, str(real))) - found - set(committed)
    meant = _meant(folder, forgotten, gone)
    missed = [_row(folder, name, _not_checked_out(folder, name)) for name in sorted(set(committed) - found)]
    removed = {name: commit for name in sorted(gone - meant) if (commit := _taken_out(real, name))}
    missed += [_row(folder, name, _vanished(folder, name)) for name in sorted(gone - meant - set(removed))]
    missed += [_row(folder, name, f"commit {commit} took it away", VerdictName.WARN) for name, commit in removed.items()]
    if trouble:
        missed.append(NightlyRow(str(folder), VerdictName.WARN, 0, f"which suites there should be is not known: {trouble}"))
    known = sorted((found | set(committed) | gone) - meant - set(removed))
    return Roll(str(real), tuple(there), tuple(missed), tuple(known))


def _row(folder: Path, name: str, sentence: str, verdict: VerdictName = VerdictName.ERROR) -> NightlyRow:
    return NightlyRow(str(folder / name), verdict, verdict.exit_code, sentence)


def _not_checked_out(folder: Path, name: str) -> str:
    return f"is committed and is not there; next: git restore {shlex.quote(str(folder / name))}, or take it out by a commit"


def _vanished(folder: Path, name: str) -> str:
    command = f"kbgate nightly --folder {shlex.quote(str(folder))} --forget {shlex.quote(name)}"
    return f"was there last night and is gone; bring it back, or, where that was meant: {command}"


def _from(folder: Path, suite: str) -> str:
    """A suite as a path from the folder."""
    return Path(os.path.relpath(suite, folder)).as_posix()


def _meant(folder: Path, forgotten: Sequence[str], gone: set[str]) -> set[str]:
    """What was said to be gone, as paths from the folder; raises `InputError` for what is not."""
    names = {name: next((way for way in (name, _from(folder, name)) if way in gone), "") for name in forgotten}
    unknown = sorted(name for name, way in names.items() if not way)
    if unknown:
        raise InputError(Problem("--forget", 0, f"'{name}' is not missing; {did_you_mean(name, gone)}") for name in unknown)
    return set(names.values())


def _last_night(home: Path, folder: str) -> list[str]:
    """What the last night of a folder knew of, as paths from it; nothing where there was none."""
    path = home / FILE
    if not path.exists():
        return []
    for line in reversed(path.read_text(encoding="utf-8", errors="replace").split("\n")):
        try:
            night = parse_json(line)
        except ValueError:
            continue
        if isinstance(night, dict) and night.get("folder") == folder:
            suites = night.get("suites")
            return [str(name) for name in suites] if isinstance(suites, list) else []
    return []


def _committed(folder: Path) -> tuple[list[str], str]:
    """The suites that git has under a folder, as paths from it, and why that cannot be told; nothing outside a repository."""
    place = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    try:
        top = run_git(place, "rev-parse", "--show-toplevel")
        if top.returncode != 0:
            return [], "" if b"not a git repository" in top.stderr else trouble_of(top)
        if run_git(place, "rev-parse", "--verify", "--quiet", "HEAD").returncode != 0:
            return [], ""
        root = Path(os.fsdecode(top.stdout).removesuffix("\n"))
        below = folder.relative_to(root).as_posix()
        where = () if below == "." else ("--", below)
        tracked = answer_of(run_git(root, "--literal-pathspecs", "ls-tree", "-r", "-z", "--name-only", "HEAD", *where), root)
        sparse = answer_of(run_git(root, "--literal-pathspecs", "ls-files", "-t", "-z", *where), root)
    except (Unmeasured, ValueError) as error:
        # Without git a night still has the one before; a folder that git does not know of has no commits.
        return [], "" if isinstance(error, ValueError) or "cannot be run" in str(error) else str(error)
    left_out = {name[2:] for name in _names(sparse) if name.startswith("S ")}
    files = (Path(os.path.relpath(name, below)) for name in _names(tracked) if name not in left_out)
    seen = (file for file in files if file.name in MARKS and all(map(is_looked_into, file.parts[:-1])))
    return suites_of(seen), ""


def _taken_out(folder: Path, name: str) -> str:
    """The commit that took a suite out of git; "" where none did."""
    place = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    marks = [str(folder / name / mark) for mark in MARKS]
    try:
        known = run_git(place, "--literal-pathspecs", "log", "-1", "--format=%h", "--", *marks)
    except Unmeasured:
        return ""
    return known.stdout.decode().strip() if known.returncode == 0 else ""


def _names(listed: bytes) -> Iterable[str]:
    return (os.fsdecode(name) for name in listed.split(b"\0") if name)
