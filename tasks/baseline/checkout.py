"""Whose repository says what the target branch is: the working directory's, and everything that is read is a plain file of it.

A link or a submodule on the way would let a change bring the repository, and so the baseline and gates, that judge it.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from pathlib import Path

from kbgate.tasks.baseline.files import FILES
from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.git import run_git, trouble_of
from kbgate.tasks.inputs import golden
from kbgate.tasks.inputs.folder import LINK, walk
from kbgate.tasks.inputs.readers import CORPUS, READERS
from kbgate.tasks.settings import FILE, Suite

_BEIR = ("queries.jsonl", "qrels")


def input_paths(suite: Suite) -> tuple[str, ...]:
    """What is read of a suite where it is there, as paths from its folder."""
    cases = (golden.FILE,) if os.path.lexists(suite.folder / golden.FILE) else (golden.FILE, *_beside(suite.kb.path))
    return (suite.kb.path, FILE, *cases, *FILES)


def _beside(cards: str) -> Iterator[str]:
    """Questions and judgments in BEIR form, which stand beside a file of cards."""
    return (posixpath.join(posixpath.dirname(cards), name) for name in _BEIR)


def refuse_foreign_files(suite: Suite) -> None:
    """Raise `InputError` unless all that is read of a suite are plain tracked files of the working directory's repository."""
    here = _logical()
    folder = _on_foot(here, suite.given or str(suite.folder))
    top = _top(here)
    if folder != top and top not in folder.parents:
        sentence = f"is not in {top}, the repository of the working directory; change to the suite's repository first"
        raise InputError([Problem(suite.given, 0, sentence)])
    if _asked(folder, "rev-parse", "--show-toplevel") != str(top):
        raise InputError([Problem(suite.given, 0, f"is a submodule or a repository of its own inside {top}")])
    problems = [problem for name in _inputs(suite) for problem in _mistakes(top, folder, name)]
    if problems:
        raise InputError(problems)


def _logical() -> Path:
    """The working directory as the shell came to it, links included, where it says so."""
    real, told = Path.cwd(), Path(os.environ.get("PWD", ""))
    return told if told.is_absolute() and told.is_dir() and told.samefile(real) else real


def _on_foot(start: Path, way: str) -> Path:
    """Where a way leads, step by step; a link below the top of any repository is refused, one above it is followed."""
    place, way_from = Path(start.anchor or "/"), start / way
    for step in way_from.parts[1:]:
        following = place.parent if step == ".." else place / step
        if not following.is_symlink():
            place = following
        elif any(os.path.lexists(parent / ".git") for parent in (place, *place.parents)):
            raise InputError([Problem(str(following), 0, "is a link inside a repository; name the place it stands for itself")])
        else:
            place = following.resolve()
    return place


def _top(here: Path) -> Path:
    """The top of the working directory's repository, which is nobody's submodule."""
    top = Path(_asked(_on_foot(here, "."), "rev-parse", "--show-toplevel"))
    outer = _asked(top, "rev-parse", "--show-superproject-working-tree")
    if outer:
        sentence = f"is a submodule of {outer}, whose target branch decides; change to {outer} first"
        raise InputError([Problem(str(top), 0, sentence)])
    return top


def _asked(folder: Path, *arguments: str) -> str:
    answer = run_git(folder, *arguments)
    if answer.returncode != 0:
        raise InputError([Problem(str(folder), 0, trouble_of(answer))])
    return os.fsdecode(answer.stdout).removesuffix("\n")


def _inputs(suite: Suite) -> Iterator[str]:
    """What is read of a suite, as paths from its folder; its cards have to be there."""
    for name in input_paths(suite):
        if name == suite.kb.path or os.path.lexists(suite.folder / name):
            yield name


def _mistakes(top: Path, folder: Path, name: str) -> Iterator[Problem]:
    """Why an input, or a file in it, is not a plain tracked file."""
    try:
        path = _on_foot(folder, name)
    except InputError as error:
        yield from error.problems
        return
    if top not in path.parents and path != top:
        sentence = f"is outside {top}: git cannot say what a change did to it; examine it with: kbgate evaluate"
        yield Problem(name, 0, sentence)
        return
    tracked = _tracked(top, path)
    for file in _files(path):
        mode = tracked.get(file, "")
        kind = {"120000": "a link", "160000": "a submodule"}.get(mode, "")
        if file.is_symlink() or kind:
            yield Problem(str(file.relative_to(top)), 0, f"is {kind or 'a link'}; a suite is read from plain files")
        elif not mode and os.path.lexists(file):
            yield Problem(str(file.relative_to(top)), 0, "is not tracked by git; add it (git add), or take it out")
    for file, mode in tracked.items():
        if not mode.startswith("100"):
            yield Problem(str(file.relative_to(top)), 0, "is a link or a submodule; a suite is read from plain files")


def _files(path: Path) -> Iterator[Path]:
    """The files that are read of an input: itself, or what readers look at in a folder."""
    if not path.is_dir():
        yield path
        return
    for name, reason in walk(path):
        file = path / name
        looked_at = file.suffix.lower() in READERS or file.name == CORPUS or any(part in _BEIR for part in name.split("/"))
        if reason == LINK or (not reason and looked_at):
            yield file


def _tracked(top: Path, path: Path) -> dict[Path, str]:
    """What git tracks at a path and below: the mode of each file."""
    listed = run_git(top, "--literal-pathspecs", "ls-files", "--stage", "-z", "--", str(path.relative_to(top)))
    if listed.returncode != 0:
        raise InputError([Problem(str(path), 0, trouble_of(listed))])
    entries = [os.fsdecode(entry).partition("\t") for entry in listed.stdout.split(b"\0") if entry]
    return {top / name: head.split(" ")[0] for head, _, name in entries}
