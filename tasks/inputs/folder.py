"""Which files of a folder are read as cards, and which are not and why: nothing is left out unsaid, no link is followed."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kbgate.tasks.errors import InputError, Problem, did_you_mean, named
from kbgate.tasks.settings import FILE, Kb

LINK, HIDDEN, MODULES, ENVIRONMENT, RUN, EXCLUDED, BINARY, ODD = (
    "links", "hidden", "node_modules", "virtual environments", "runs of kbgate", "excluded by [kb]", "binary",
    "not plain files",
)  # fmt: skip
"""Why a file, or a folder with all that is in it, is not read; a file of another kind is left out by its suffix."""
_OF_AN_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
OF_A_RUN = ("run.parquet", "scores.parquet")
"""What a folder holds that is a run of kbgate, even one that was interrupted."""
_HEAD = 8000
"""Bytes of a file that are looked at; one of 0 among them is no text's, as git sees it too."""
LeftOut = Mapping[str, Sequence[str]]
"""Files that are not read, by the reason; a folder ends with a slash, and stands for all that is in it."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Text has bytes of 0 in this encoding, which is refused where the text is read."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a folder holds, as paths from it, in the order of their parts."""

    documents: tuple[str, ...]
    left_out: LeftOut


def list_folder(root: Path, kb: Kb, suffixes: Collection[str], own: Collection[str] = ()) -> Listing:
    """The documents of a folder, and everything else in it; raises `InputError` for what cannot be looked into.

    `own`: files at its top that nobody would miss, since the suite itself reads them.
    """
    documents, left_out, entries = list[str](), dict[str, list[str]](), sorted(walk(root), key=lambda one: one[0].split("/"))
    for name, reason in entries:
        why = reason or (EXCLUDED if _is_excluded(name, kb) else _unread(root / name, suffixes))
        if not why:
            documents.append(name)
        elif name not in own:
            left_out.setdefault(why, []).append(name)
    problems = list(_idle(kb, documents, [name for name, _ in entries]))
    if problems:
        raise InputError(problems)
    return Listing(tuple(documents), {why: tuple(left_out[why]) for why in sorted(left_out)})


def walk(root: Path) -> Iterator[tuple[str, str]]:
    """Every file of a folder, and "" or why it is never read; a folder that never is stands for all that is in it."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        for entry in _entries(root, inside):
            name = inside + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            reason = _never(entry, is_folder)
            if is_folder and not reason:
                waiting.append(f"{name}/")
            else:
                yield (f"{name}/" if is_folder else name), reason


def told(left_out: LeftOut) -> str:
    """Files that are not read, counted by reason and named, as half a sentence; "" for none."""
    return "; ".join(f"{len(names)} {reason} ({named(names)})" for reason, names in left_out.items())


def _entries(root: Path, inside: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / inside) as found:
            return list(found)
    except OSError as error:  # what cannot be looked into is not known to be empty
        raise InputError([Problem(inside or root.name, 0, f"cannot be read: {error.strerror}")]) from None


def _never(entry: os.DirEntry[str], is_folder: bool) -> str:
    """Why an entry is never read, whatever it is called in [kb]."""
    if entry.is_symlink():
        return LINK
    if entry.name.startswith("."):
        return HIDDEN
    if not is_folder:
        return "" if entry.is_file(follow_symlinks=False) else ODD
    if entry.name.lower() == "node_modules":
        return MODULES
    if any(os.path.lexists(Path(entry) / name) for name in _OF_AN_ENVIRONMENT):
        return ENVIRONMENT
    return RUN if all(os.path.lexists(Path(entry) / name) for name in OF_A_RUN) else ""


def _unread(path: Path, suffixes: Collection[str]) -> str:
    """Why a plain file is not read: its suffix, or that it is no text."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        return suffix or "without a suffix"
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return ""  # whoever reads it says why it cannot be read
    return BINARY if b"\0" in head and not head.startswith(_UTF_16) else ""


def _is_excluded(name: str, kb: Kb) -> bool:
    return not any(_matches(glob, name) for glob in kb.include) or any(_matches(glob, name) for glob in kb.exclude)


def _idle(kb: Kb, documents: list[str], names: list[str]) -> Iterator[Problem]:
    """Globs that choose nothing: a slip of the pen would leave cards out, or let them in."""
    top = {name.split("/")[0] for name in names}
    for number, glob in enumerate(kb.include):
        if glob != "**" and not any(_matches(glob, name) for name in documents):
            why = "matches no file that is read (hidden ones, links, node_modules and virtual environments never are)"
            yield Problem(FILE, 0, f"kb.include.{number}: '{glob}' {why}; {did_you_mean(glob.split('/')[0], top)}")
    for number, glob in enumerate(kb.exclude):
        if not any(_matches(glob, name) or (name.endswith("/") and glob.startswith(name)) for name in names):
            yield Problem(FILE, 0, f"kb.exclude.{number}: '{glob}' matches nothing; {did_you_mean(glob.split('/')[0], top)}")


def _matches(glob: str, name: str) -> bool:
    """Whether a glob names a file, or a folder it stands in."""
    return _compiled(glob).fullmatch(name) is not None


@cache
def _compiled(glob: str) -> re.Pattern[str]:
    """`**` for any folders, `*` and `?` within a name."""
    *folders, last = ("**" if part == "**" else _segment(part) for part in glob.rstrip("/").split("/"))
    way = "".join("(?:.*/)?" if part == "**" else f"{part}/" for part in folders)
    return re.compile(way + (".*" if last == "**" else f"{last}(?:/.*)?"), re.DOTALL)


def _segment(part: str) -> str:
    wild = {"*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(character) or re.escape(character) for character in part)
