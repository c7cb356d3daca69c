"""What git makes of a branch and its target, examined before anybody merges: written out beside the checkout, for a while.

The merged tree stands in a temporary repository that borrows the checkout's objects: nothing is written into that one. Of the
tree only what is read of the suite is written out, as a checkout would write it. Git merges commits: what is not committed
would not be examined, and is refused.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from kbgate.tasks.baseline.behind import changed_inputs
from kbgate.tasks.baseline.checkout import input_paths
from kbgate.tasks.baseline.commit import COMMIT
from kbgate.tasks.baseline.review import commit_of
from kbgate.tasks.errors import InputError, Problem, Unmeasured, named
from kbgate.tasks.git import answer_of, is_shallow, run_git, trouble_of, version
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.schema import Merged
from kbgate.tasks.settings import FILE, Suite

OPTION = "--merged"
_SINCE = (2, 38)
"""The first git that merges without a checkout."""
_NOBODY = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (
    ("NAME", "kbgate"), ("EMAIL", "kbgate@localhost"), ("DATE", "@0 +0000"),
)}  # fmt: skip
"""Who makes the commit of the temporary repository, and when: the same commit of the same pair."""
# Nothing of the user's is started for a repository that is gone in a minute, and no cache of theirs is renewed by it.
_QUIETLY = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.splitIndex=false")


@dataclass(frozen=True, slots=True)
class Merge:
    """A branch and its target as git merges them."""

    suite: Suite
    """As the merge has it; the checkout's where git could not make it."""
    commits: Merged
    conflict: str = ""
    """Why git could not make it, and the command that merges by hand; "" where it could."""


@contextlib.contextmanager
def merge_with(suite: Suite, ref: str) -> Iterator[Merge]:
    """Merge what is checked out with what `ref` names, and write out what is read of the suite until the end of the block.

    Raises `InputError` where this git cannot merge so, and where the outcome would not be what the person means who asks:
    changes that are not committed, a clone that lacks history, a branch that holds nothing of its own.
    """
    target, change = commit_of(suite.folder, ref), commit_of(suite.folder, "HEAD")
    by_hand = f"git merge {shlex.quote(ref)}"
    _refuse_old_git(suite.folder, by_hand)
    _refuse_uncommitted(suite)
    _refuse_without_history(suite.folder, ref, target, change)
    with tempfile.TemporaryDirectory(prefix="kbgate-") as folder:
        place = _Place(suite.folder, Path(folder).resolve())
        tree, conflicts = place.merge(target, change)
        commits = Merged(target=target, change=change, tree=tree)
        if conflicts:
            sentence = f"git cannot merge {ref} into this branch by itself: both changed {named(conflicts)}"
            yield Merge(suite, commits, f"{sentence}; merge it by hand: {by_hand}")
        else:
            yield Merge(_written_out(place, suite, tree, ref), commits)


def _refuse_old_git(folder: Path, by_hand: str) -> None:
    found = version(folder)
    if found is not None and found < _SINCE:
        told, needed = (".".join(map(str, numbers)) for numbers in (found, _SINCE))
        sentence = f"git {told} cannot merge without a checkout, and git {needed} can; merge by hand, without it: {by_hand}"
        raise InputError([Problem(OPTION, 0, sentence)])


def _refuse_uncommitted(suite: Suite) -> None:
    changed = list(changed_inputs(suite, suite, "HEAD"))
    if changed:
        sentence = f"git merges commits, and {named(changed)} stands here as it is in none; commit it, or leave out {OPTION}"
        raise InputError([Problem(OPTION, 0, sentence)])


def _refuse_without_history(folder: Path, ref: str, target: str, change: str) -> None:
    if is_shallow(folder):
        # What is missing may be the commit where both part: from an older one another tree would come of it.
        sentence = "this clone is shallow, and a merge needs the history of both; next: git fetch --unshallow origin"
        raise InputError([Problem(OPTION, 0, sentence)])
    base = run_git(folder, "merge-base", target, change)
    if base.returncode != 0:
        sentence = trouble_of(base) if base.stderr.strip() else f"'{ref}' and what is checked out have no commit in common"
        raise InputError([Problem("--baseline-ref", 0, sentence)])
    if base.stdout.decode().strip() == change:
        sentence = f"'{ref}' holds all that is checked out; a change cannot be compared with itself"
        raise InputError([Problem("--baseline-ref", 0, sentence)])


class _Place:
    """A temporary repository beside a checkout, whose objects it borrows."""

    def __init__(self, folder: Path, top: Path):
        """`folder`: in the checkout; `top`: empty."""
        self.folder, self.top = folder, top
        form, objects, directory, root, self.prefix = (
            os.fsdecode(answer_of(run_git(folder, "rev-parse", "--path-format=absolute", *what), folder)).removesuffix("\n")
            for what in (
                ["--show-object-format"],
                ["--git-path", "objects"],
                ["--git-dir"],
                ["--show-toplevel"],
                ["--show-prefix"],
            )
        )
        self._root = Path(root)
        self._git("init", "--quiet", "--template=", f"--object-format={form}", str(top))
        own = top / ".git" / "objects"
        (own / "info").mkdir(exist_ok=True)
        (own / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
        self._borrowed = {"GIT_OBJECT_DIRECTORY": str(own)}
        # The checkout's own settings say how files are written (line ends, filters such as Git LFS).
        settings = {"GIT_DIR": directory, "GIT_WORK_TREE": str(top), "GIT_INDEX_FILE": str(top / ".git" / "index")}
        self._as_checkout = {**self._borrowed, **settings}

    def merge(self, target: str, change: str) -> tuple[str, list[str]]:
        """The tree of two commits, and the files that git could not merge; where it could, it is checked out from here on."""
        how = ("--write-tree", "--name-only", "--no-messages", "-z")
        answer = run_git(self._root, "merge-tree", *how, target, change, variables=self._borrowed)
        if answer.returncode not in (0, 1):
            raise Unmeasured(f"{self.folder}: git could not merge: {trouble_of(answer)}")
        tree, *conflicts = (os.fsdecode(part) for part in answer.stdout.split(b"\0") if part)
        if answer.returncode == 0:
            parents = ("-p", target, "-p", change)
            commit = self._git("commit-tree", tree, *parents, "-m", "a merge", variables=_NOBODY).decode().strip()
            self._git("update-ref", "HEAD", commit)
            self._git("read-tree", "--no-sparse-checkout", tree, variables=self._as_checkout)
            return tree, []
        return tree, sorted(set(conflicts)) or ["what it does not name"]

    def entries(self, tree: str, paths: Iterable[str]) -> dict[str, str]:
        """The modes of a tree's files at and below these paths from its top, by path."""
        wanted = sorted(set(paths))
        below = [] if "." in wanted else ["--", *wanted]
        listed = self._git("--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", tree, *below)
        lines = [os.fsdecode(line).partition("\t") for line in listed.split(b"\0") if line]
        return {path: head.split(" ")[0] for head, _, path in lines}

    def write(self, paths: Iterable[str]) -> None:
        """Write files of the merged tree out, as a checkout would."""
        given = b"".join(os.fsencode(path) + b"\0" for path in paths)
        self._git("checkout-index", "-f", "-u", "-z", "--stdin", stdin=given, variables=self._as_checkout)

    def _git(self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] = MappingProxyType({})) -> bytes:
        return answer_of(run_git(self.top, *_QUIETLY, *arguments, stdin=stdin, variables=variables), self.folder)


def _written_out(place: _Place, suite: Suite, tree: str, ref: str) -> Suite:
    """The suite as the merged tree has it: its settings first, which say where the rest is."""
    folder = place.top / place.prefix
    settings = place.entries(tree, [_path_of(place, FILE)])
    there = settings or place.entries(tree, [_path_of(place, ".")])
    if not there:
        sentence = f"is not in the merge with {ref}, which took it away, or left a link in its place"
        raise InputError([Problem(suite.given, 0, sentence)])
    place.write(_plain(there))
    merged = load_suite(folder).model_copy(update={"given": suite.given, "floors": suite.floors})
    needed = (*input_paths(merged), COMMIT)
    found = place.entries(tree, (_path_of(place, name) for name in needed))
    strange = [path for path, mode in found.items() if not mode.startswith("100")]
    if strange:
        what = "is a link or a submodule in the merge; a suite is read from plain files"
        raise InputError(Problem(path, 0, what) for path in strange)
    place.write(_plain({**found, **_model(place, merged, tree)}))
    return merged


def _path_of(place: _Place, name: str) -> str:
    """An input's path from the top of the repository; raises `InputError` where it is outside of it."""
    path = posixpath.normpath(posixpath.join(place.prefix, name))
    if posixpath.isabs(path) or path.split("/")[0] == "..":
        raise InputError([Problem(name, 0, "is outside the repository in the merge: git cannot say what a change did to it")])
    return path


def _model(place: _Place, merged: Suite, tree: str) -> dict[str, str]:
    """The files of the suite's model, where that is a folder beside the suite which git has."""
    path = posixpath.normpath(posixpath.join(place.prefix, merged.embedding.model))
    return {} if posixpath.isabs(path) or path.split("/")[0] in ("..", ".") else place.entries(tree, [path])


def _plain(entries: Mapping[str, str]) -> list[str]:
    """The paths of what is a plain file; a link is never written, so none is followed."""
    return [path for path, mode in entries.items() if mode.startswith("100")]
