"""What the cards were when the baseline was accepted, out of git: the file or the folder, as the baseline's commit has it.

Nothing is checked out: the plain files of that tree are written into a temporary folder, byte for byte, links and submodules
left out, and read as that commit's own settings say. Whether a card is the one the baseline was made of, its hash says.
"""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kbgate.tasks.baseline.files import FILES
from kbgate.tasks.baseline.review import target_suite
from kbgate.tasks.domain import Cards
from kbgate.tasks.errors import InputError, KbgateError, Unmeasured
from kbgate.tasks.git import answer_of, is_shallow, run_git, trouble_of
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.settings import Suite

_FILES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Recovery:
    """The cards that git has of the baseline's commit, and why it has not all of them, as half a sentence."""

    cards: Cards = field(default_factory=dict)
    trouble: str = ""


def recover_cards(suite: Suite) -> Recovery:
    """The cards as they stand in the commit that last changed the baseline; what git cannot tell, and why, instead."""
    try:
        return _recovered(suite)
    except KbgateError as error:
        return Recovery(trouble=str(error).split("\n")[0])


def _recovered(suite: Suite) -> Recovery:
    last = run_git(suite.folder, "log", "-1", "--format=%H", "--", FILES[0])
    commit = last.stdout.decode(errors="replace").strip()
    if last.returncode != 0:
        told = trouble_of(last).partition(";")[0]
        return Recovery(trouble=told if told.startswith("git says") else f"the suite {told}")
    if not commit:
        return Recovery(trouble=f"{FILES[0]} is in no commit")
    shallow = is_shallow(suite.folder)
    advice = "; this clone is shallow: git fetch --unshallow" if shallow else ""
    theirs = suite.model_copy(update={"kb": _settings_at(suite, commit).kb})
    top, prefix = (
        os.fsdecode(answer_of(run_git(suite.folder, "rev-parse", what), suite.folder)).removesuffix("\n")
        for what in ("--show-toplevel", "--show-prefix")
    )
    path = posixpath.normpath(posixpath.join(prefix, theirs.kb.path))
    if posixpath.isabs(path) or path.split("/")[0] == "..":
        where = "is an absolute path, which no commit has" if posixpath.isabs(path) else "is outside the repository"
        return Recovery(trouble=f"{theirs.kb.path} {where}")
    blobs = _plain_files(Path(top), commit, path)
    if not blobs:
        return Recovery(trouble=f"commit {commit[:12]} has no {theirs.kb.path}{advice}")
    with tempfile.TemporaryDirectory(prefix="kbgate-") as folder:
        _write_out(Path(top), blobs, Path(folder).resolve())
        kb = load_cards(theirs.model_copy(update={"folder": Path(folder).resolve() / prefix}))
    lost = f"; {kb.problems[0]}" if kb.problems else ""
    return Recovery(kb.cards, f"commit {commit[:12]} has it otherwise{lost}{advice}")


def _settings_at(suite: Suite, commit: str) -> Suite:
    """The settings of a commit; those of today where they can no longer be read."""
    try:
        return target_suite(suite, commit)
    except InputError:
        return suite


def _plain_files(top: Path, commit: str, path: str) -> dict[str, str]:
    """The blobs of a tree's plain files at or below a path, by their paths from its top."""
    below = [] if path == "." else ["--", path]
    listed = answer_of(run_git(top, "--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", commit, *below), top)
    lines = [os.fsdecode(line).partition("\t") for line in listed.split(b"\0") if line]
    plain = {name: head.split(" ")[2] for head, _, name in lines if head.startswith("100")}
    return {name: blob for name, blob in plain.items() if ".." not in name.split("/")}  # git itself writes no such tree


def _write_out(top: Path, blobs: dict[str, str], folder: Path) -> None:
    """Write blobs out by their paths in a folder."""
    every = [*blobs]
    for at in range(0, len(every), _FILES_AT_ONCE):
        names = every[at : at + _FILES_AT_ONCE]
        for name, content in zip(names, _contents(top, [blobs[name] for name in names]), strict=True):
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)


def _contents(top: Path, blobs: Sequence[str]) -> list[bytes]:
    """What blobs hold, in their order; raises `Unmeasured` for one that is not here, as in a partial clone."""
    answer = answer_of(run_git(top, "cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in blobs).encode()), top)
    contents, at = [], 0
    for blob in blobs:
        head, _, _ = answer[at : at + 200].partition(b"\n")
        kind, _, size = head.partition(b" ")[2].partition(b" ")
        if kind != b"blob" or not size.isdigit():
            raise Unmeasured(f"git has no {blob[:12]} here; a partial clone does not do")
        at += len(head) + 1
        contents.append(answer[at : at + int(size)])
        at += int(size) + 1
    return contents
