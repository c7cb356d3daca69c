"""What may begin anew: a first baseline only where there was none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kbgate.tasks.baseline.files import SUMMARY
from kbgate.tasks.errors import Refused, Unmeasured
from tests.exams import Desk, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c0")
NO_FIRST = "git knows an earlier baseline of this suite"


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture
def repository(desk: Desk) -> Desk:
    """A desk in a repository that has its baseline, removed since from the working tree."""
    git(desk.folder, "init", "-q", "-b", "main")
    desk.case("a")
    desk.accept({"a": HIT})
    git(desk.folder, "add", "-A")
    git(desk.folder, "commit", "-qm", "accepted")
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    return desk


@pytest.mark.parametrize(("accept_regression", "anchor"), [(False, False), (True, False), (False, True)])
def test_a_baseline_that_git_knows_cannot_be_begun_anew(accept_regression: bool, anchor: bool, repository: Desk) -> None:
    with pytest.raises(Refused, match=NO_FIRST):
        repository.accept({"a": MISS}, accept_regression=accept_regression, anchor=anchor)
    assert not list(repository.folder.glob("baseline*"))


def test_it_can_knowingly(repository: Desk) -> None:
    assert repository.accept({"a": MISS}, accept_regression=True, anchor=True).cases["a"].scores["contract@3"] == 0.0


def test_also_where_its_removal_was_committed_and_where_another_branch_has_it(repository: Desk) -> None:
    git(repository.folder, "commit", "-qam", "no baseline")
    with pytest.raises(Refused, match=NO_FIRST):
        repository.accept({"a": MISS})
    git(repository.folder, "checkout", "-q", "--orphan", "fresh")
    git(repository.folder, "commit", "-qm", "as if nothing had been")
    with pytest.raises(Refused, match=git(repository.folder, "rev-parse", "main")[:12]):
        repository.accept({"a": MISS})


def test_a_first_baseline_is_one_in_a_repository_and_outside(desk: Desk) -> None:
    desk.case("a")
    assert desk.accept({"a": HIT}).cases
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    git(desk.folder, "init", "-q")
    assert desk.accept({"a": HIT}).cases, "no commit yet"


def test_a_baseline_beside_it_is_another_suites(desk: Desk) -> None:
    git(desk.folder.parent, "init", "-q")
    (desk.folder.parent / "other").mkdir()
    (desk.folder.parent / "other" / SUMMARY).write_text("{}")
    git(desk.folder.parent, "add", "-A")
    git(desk.folder.parent, "commit", "-qm", "another suite")
    desk.case("a")
    assert desk.accept({"a": HIT}).cases


def test_where_git_does_not_answer_nothing_is_begun(desk: Desk) -> None:
    (desk.folder / ".git").write_text("gitdir: /nowhere\n")
    desk.case("a")
    with pytest.raises(Unmeasured, match="git does not say whether there was a baseline before"):
        desk.accept({"a": HIT})
