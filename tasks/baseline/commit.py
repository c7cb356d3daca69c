"""Several files of a suite replaced together: written into a folder of their own, which is renamed, then moved home.

The rename is the commit point. What a kill leaves behind is finished by one command and by nothing that only reads: a folder
of that name which came with somebody's change would otherwise replace the settings that are to judge it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from kbgate.tasks.errors import InputError, Problem, Unmeasured
from kbgate.tasks.git import run_git
from kbgate.tasks.records import sync_folder

COMMIT, _STAGED = ".baseline.commit", ".baseline.staged"
"""A complete new baseline on its way home, and one that is still being written."""

Write = Callable[[Path], object]
"""Writes one file at a path."""


def refuse_interrupted(folder: Path, given: str) -> None:
    """Raise `InputError` where an update of the baseline was interrupted: the files may be half the old, half the new ones."""
    if os.path.lexists(folder / COMMIT):
        where = shlex.quote(given or str(folder))
        sentence = (
            "is what an interrupted update of the baseline leaves, and reading it changes nothing; next: "
            f"kbgate baseline update {where} --finish, or, if no update of yours was interrupted: rm -r {where}/{COMMIT}"
        )
        raise InputError([Problem(COMMIT, 0, sentence)])


def replace_together(folder: Path, files: Mapping[str, Write], rivals: Mapping[str, str]) -> None:
    """Replace all the files of a folder, or none. `rivals`: by file, the one that must be gone where it stands."""
    staged = folder / _STAGED
    shutil.rmtree(staged, ignore_errors=True)
    if os.path.lexists(staged):
        raise InputError([Problem(_STAGED, 0, f"is no folder of kbgate's: remove it from {folder}")])
    staged.mkdir()
    for name, write in files.items():
        write(staged / name)
    staged.rename(folder / COMMIT)
    sync_folder(folder)
    _move(folder, rivals)


def finish(folder: Path, allowed: tuple[str, ...], rivals: Mapping[str, str], prove: Callable[[Path], object]) -> bool:
    """Finish an interrupted replacement; False where there is none.

    `prove` is given a folder with the files as they would stand afterwards, and raises where these do not belong together.
    Nothing is moved before it has returned.
    """
    if not os.path.lexists(folder / COMMIT):
        return False
    problems = [Problem(COMMIT, 0, f"{sentence}; nothing was moved") for sentence in _mistakes(folder / COMMIT, allowed)]
    if problems:
        raise InputError(problems)
    names = {path.name for path in (folder / COMMIT).iterdir()}
    with tempfile.TemporaryDirectory(prefix="kbgate-") as trial:
        for name in allowed:
            source = folder / COMMIT / name if name in names else folder / name
            beaten = any(rivals.get(new) == name for new in names)
            if _is_file(source) and not beaten:
                shutil.copyfile(source, Path(trial) / name, follow_symlinks=False)
        try:
            prove(Path(trial))
        except InputError as error:
            sentence = f"does not make one baseline with the files beside it; nothing was moved; next: rm -r {folder / COMMIT}"
            raise InputError([*error.problems, Problem(COMMIT, 0, sentence)]) from None
    _move(folder, rivals)
    return True


def _mistakes(commit: Path, allowed: tuple[str, ...]) -> Iterator[str]:
    """Why a folder is not what an interrupted update leaves."""
    if commit.is_symlink() or not commit.is_dir():
        yield "is a link, or no folder: no update of kbgate's made it; remove it"
        return
    if _tracks(commit):
        yield f"is tracked by git, and an update is never committed half-way; take it out with: git rm -r --cached {COMMIT}"
    for path in sorted(commit.iterdir()):
        if path.name not in allowed:
            yield f"holds '{path.name}'; an update moves {', '.join(allowed)} and nothing else"
        elif not _is_file(path):
            yield f"holds '{path.name}', which is not a regular file"


def _tracks(commit: Path) -> bool:
    """Whether git knows the folder or anything in it, in what is staged or in what is checked out."""
    if not any(os.path.lexists(parent / ".git") for parent in commit.parents):
        return False
    asked = [run_git(commit.parent, "ls-files", "-z", "--", COMMIT)]
    if run_git(commit.parent, "rev-parse", "--verify", "--quiet", "HEAD").returncode == 0:
        asked.append(run_git(commit.parent, "ls-tree", "-z", "HEAD", "--", COMMIT))
    for answer in asked:
        if answer.returncode != 0:
            trouble = answer.stderr.decode(errors="replace").strip().split("\n")[0]
            raise Unmeasured(f"{commit}: git does not say whether it tracks the folder ({trouble}); nothing was moved")
    return any(answer.stdout for answer in asked)


def _is_file(path: Path) -> bool:
    """Whether a regular file stands there itself, not behind a link."""
    return os.path.lexists(path) and stat.S_ISREG(path.lstat().st_mode)


def _move(folder: Path, rivals: Mapping[str, str]) -> None:
    """Move every file home. What a new file replaces under another name goes first: the new one is still safe then."""
    commit = folder / COMMIT
    names = sorted(path.name for path in commit.iterdir())
    for name in names:
        if name in rivals:
            (folder / rivals[name]).unlink(missing_ok=True)
    for name in names:
        (commit / name).replace(folder / name)
    sync_folder(folder)
    commit.rmdir()
