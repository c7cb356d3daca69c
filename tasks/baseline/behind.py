"""A branch that is behind its target: held against a baseline that was accepted of cards or cases it does not have yet."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from kbgate.tasks.baseline.checkout import input_paths
from kbgate.tasks.errors import InputError, Problem, named
from kbgate.tasks.git import is_shallow, run_git, trouble_of
from kbgate.tasks.settings import Suite


def behind(suite: Suite, theirs: Suite, target: str, ref: str) -> str:
    """What the target changed of suite or cards since the branch left it, and the command that merges it; "" for nothing.

    `theirs`: the suite as the target has it; `target`: the commit that `ref` names. What stands in the checkout as it does
    in the target is not missing there, however it came.
    """
    folder = suite.folder
    differs = set(changed_inputs(suite, theirs, target))
    base = run_git(folder, "merge-base", target, "HEAD")
    if base.returncode == 0:
        missing = differs & set(changed_inputs(suite, theirs, base.stdout.decode().strip(), target))
    elif base.stderr.strip():
        raise InputError([Problem(str(folder), 0, trouble_of(base))])
    else:
        _refuse_without_common_commit(folder, ref, differs)
        return ""
    if not missing:
        return ""
    return (
        f"{ref} changed {named(sorted(missing))} since this branch left it, so there is nothing to hold the branch against; "
        f"merge it first: git merge {shlex.quote(ref)}"
    )


def changed_inputs(suite: Suite, theirs: Suite, *commits: str) -> Iterator[str]:
    """The inputs that differ between two commits, or between one and the checkout, as paths from the repository's top."""
    paths = dict.fromkeys((*input_paths(suite), *input_paths(theirs)))
    how = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=none")
    listed = run_git(suite.folder, "--literal-pathspecs", *how, *commits, "--", *paths)
    if listed.returncode != 0:
        raise InputError([Problem(str(suite.folder), 0, trouble_of(listed))])
    return (os.fsdecode(name) for name in listed.stdout.split(b"\0") if name)


def _refuse_without_common_commit(folder: Path, ref: str, differs: set[str]) -> None:
    """Without the commit where both part nobody can say which of them changed what differs."""
    if not differs:
        return
    if is_shallow(folder):
        sentence = f"this clone is shallow and lacks the commit where it parts from '{ref}'; next: git fetch --unshallow origin"
    else:
        sentence = f"'{ref}' and what is checked out have no commit in common"
    raise InputError([Problem("--baseline-ref", 0, sentence)])
