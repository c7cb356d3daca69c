"""A change is judged by the repository it was checked out in, and read from plain files that repository tracks."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.baseline.checkout import refuse_foreign_files
from kbgate.tasks.baseline.review import edits_policy, suite_at
from kbgate.tasks.errors import InputError
from kbgate.tasks.git import is_shallow, trouble_of
from kbgate.tasks.inputs.suite import load_suite
from tests.conftest import write_lines


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, "-c", "protocol.file.allow=always", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def suite_in(folder: Path, kb: str = "cards.jsonl") -> Path:
    folder.mkdir(parents=True)
    (folder / "suite.toml").write_text(f'name = "faq"\n[kb]\npath = "{kb}"\n')
    write_lines(folder / "golden.jsonl", [{"id": "a", "query": "a?", "must_cite_one_of": ["c"]}])
    if kb == "cards.jsonl":
        write_lines(folder / "cards.jsonl", [{"id": "c", "text": "c"}])
    return folder


def commit(top: Path) -> None:
    git(top, "add", "-A")
    git(top, "commit", "-qm", "x")


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The top of a repository with a suite in `suites/faq`, and another repository with an easier one elsewhere."""
    for name in ("repo", "elsewhere"):
        suite_in(tmp_path / name / "suites" / "faq")
        git(tmp_path / name, "init", "-q", "-b", "main")
        commit(tmp_path / name)
    monkeypatch.chdir(tmp_path / "repo")
    monkeypatch.delenv("PWD", raising=False)
    return tmp_path / "repo"


def refusal(given: str | Path) -> str:
    with pytest.raises(InputError) as refused:
        refuse_foreign_files(load_suite(Path(given)))
    assert refused.value.exit_code == 2
    return str(refused.value)


@pytest.mark.parametrize("given", ["suites/faq", "./suites/../suites/faq", "absolute"])
def test_plain_tracked_files_are_read(given: str, top: Path) -> None:
    refuse_foreign_files(load_suite(top / "suites" / "faq" if given == "absolute" else Path(given)))


def test_a_link_above_every_repository_is_followed(top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    refuse_foreign_files(load_suite(tmp_path / "link" / "repo" / "suites" / "faq"))
    monkeypatch.setenv("PWD", str(tmp_path / "link" / "repo"))
    refuse_foreign_files(load_suite(Path("suites/faq")))


def a_submodule(top: Path, elsewhere: Path) -> None:
    shutil.rmtree(top / "suites" / "faq")
    git(top, "rm", "-rq", "--cached", "suites/faq")
    git(top, "submodule", "add", "-q", str(elsewhere), "suites/faq")
    commit(top)
    for file in (elsewhere / "suites" / "faq").iterdir():
        shutil.copy(file, top / "suites" / "faq")


def a_submodule_above(top: Path, elsewhere: Path) -> None:
    shutil.rmtree(top / "suites")
    git(top, "rm", "-rq", "--cached", "suites")
    git(top, "submodule", "add", "-q", str(elsewhere), "suites")
    shutil.copytree(elsewhere / "suites" / "faq", top / "suites" / "faq")
    commit(top)


def a_linked_suite(top: Path, elsewhere: Path) -> None:
    shutil.rmtree(top / "suites" / "faq")
    (top / "suites" / "faq").symlink_to(elsewhere / "suites" / "faq")
    commit(top)


def a_linked_parent(top: Path, elsewhere: Path) -> None:
    shutil.rmtree(top / "suites")
    (top / "suites").symlink_to(elsewhere / "suites")
    commit(top)


def a_link_inside(top: Path, elsewhere: Path) -> None:
    (top / "suites").rename(top / "hidden")
    (top / "suites").symlink_to("hidden")
    commit(top)


def linked(name: str) -> Callable[[Path, Path], None]:
    def change(top: Path, elsewhere: Path) -> None:
        (top / "suites" / "faq" / name).unlink(missing_ok=True)
        (top / "suites" / "faq" / name).symlink_to(elsewhere / "suites" / "faq" / name)
        commit(top)

    return change


def linked_questions(top: Path, elsewhere: Path) -> None:
    """In BEIR form, where they stand beside a file of cards."""
    (top / "suites" / "faq" / "golden.jsonl").unlink()
    linked("queries.jsonl")(top, elsewhere)


def untracked(name: str) -> Callable[[Path, Path], None]:
    def change(top: Path, elsewhere: Path) -> None:
        git(top, "rm", "-q", "--cached", f"suites/faq/{name}")

    return change


def a_link_git_wrote_as_a_file(top: Path, elsewhere: Path) -> None:
    """Where links cannot be made git writes their target as text, and still knows better."""
    linked("cards.jsonl")(top, elsewhere)
    (top / "suites" / "faq" / "cards.jsonl").unlink()
    write_lines(top / "suites" / "faq" / "cards.jsonl", [{"id": "c", "text": "c"}])


def a_repository_inside(top: Path, elsewhere: Path) -> None:
    git(top / "suites" / "faq", "init", "-q")
    commit(top / "suites" / "faq")


WAYS: dict[str, tuple[Callable[[Path, Path], Any], str]] = {
    "a submodule": (a_submodule, "submodule"),
    "a submodule above": (a_submodule_above, "submodule"),
    "a linked suite": (a_linked_suite, "is a link inside a repository"),
    "a linked parent": (a_linked_parent, "is a link inside a repository"),
    "a link inside the repository": (a_link_inside, "is a link inside a repository"),
    "linked cards": (linked("cards.jsonl"), "is a link"),
    "linked cases": (linked("golden.jsonl"), "is a link"),
    "linked questions": (linked_questions, "queries.jsonl: is a link"),
    "linked settings": (linked("suite.toml"), "is a link"),
    "a linked baseline": (linked("baseline.json"), "is a link"),
    "a link git wrote as a file": (a_link_git_wrote_as_a_file, "is a link"),
    "untracked cards": (untracked("cards.jsonl"), "is not tracked by git"),
    "untracked settings": (untracked("suite.toml"), "is not tracked by git"),
    "a repository of its own": (a_repository_inside, "a repository of its own"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_change_cannot_bring_the_repository_that_judges_it(way: str, top: Path, tmp_path: Path) -> None:
    change, word = WAYS[way]
    change(top, tmp_path / "elsewhere")
    assert word in refusal("suites/faq")


@pytest.mark.slow
def test_a_working_directory_behind_a_link_or_in_a_submodule(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_linked_suite(top, tmp_path / "elsewhere")
    monkeypatch.setenv("PWD", str(top / "suites" / "faq"))
    monkeypatch.chdir(top / "suites" / "faq")
    assert "is a link inside a repository" in refusal(".")
    monkeypatch.chdir(top)
    (top / "suites" / "faq").unlink()
    git(top, "rm", "-q", "--cached", "suites/faq")
    suite_in(top / "suites" / "faq")
    commit(top)
    a_submodule(top, tmp_path / "elsewhere")
    monkeypatch.setenv("PWD", str(top / "suites" / "faq"))
    monkeypatch.chdir(top / "suites" / "faq")
    assert f"is a submodule of {top}" in refusal(".")


def test_another_repository_or_none_says_nothing(top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "is not in" in refusal(tmp_path / "elsewhere" / "suites" / "faq")
    monkeypatch.chdir(tmp_path)
    assert "is in no git repository" in refusal("repo/suites/faq")


@pytest.mark.parametrize("kb", ["../../../elsewhere/suites/faq/cards.jsonl", "ABSOLUTE"])
def test_cards_outside_the_repository(kb: str, top: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "elsewhere" / "suites" / "faq" / "cards.jsonl") if kb == "ABSOLUTE" else kb
    (top / "suites" / "faq" / "suite.toml").write_text(f'name = "faq"\n[kb]\npath = "{path}"\n')
    commit(top)
    assert "examine it with: kbgate evaluate" in refusal("suites/faq")


def test_every_file_of_a_folder_of_documents_is_plain_and_tracked(top: Path, tmp_path: Path) -> None:
    suite = suite_in(top / "suites" / "docs", "pages")
    (suite / "pages" / "deep").mkdir(parents=True)
    (suite / "pages" / "deep" / "a.md").write_text("# A\n")
    commit(top)
    refuse_foreign_files(load_suite(Path("suites/docs")))
    (suite / "pages" / "image.png").write_text("")
    refuse_foreign_files(load_suite(Path("suites/docs")))
    (suite / "pages" / "deep" / "b.md").write_text("# B\n")
    assert "suites/docs/pages/deep/b.md: is not tracked by git" in refusal("suites/docs")
    (suite / "pages" / "deep" / "b.md").unlink()
    (suite / "pages" / "deep" / "b.md").symlink_to(tmp_path / "elsewhere" / "suites" / "faq" / "cards.jsonl")
    assert "suites/docs/pages/deep/b.md: is a link" in refusal("suites/docs")
    (suite / "pages" / "deep" / "b.md").unlink()
    (suite / "pages" / "more").symlink_to(tmp_path / "elsewhere")
    assert "suites/docs/pages/more: is a link" in refusal("suites/docs")


def test_a_change_is_allowed_as_many_bad_cards_as_its_target_says(top: Path) -> None:
    """It may bring a share of its own, which holds from the day it is merged."""
    folder = top / "suites" / "faq"
    for written, allowed in (("", 0.0), ('on_bad_card = "reject"\nrejected_share = 0.1\n', 0.1)):
        (folder / "suite.toml").write_text(f'name = "faq"\n[kb]\n{written}')
        commit(top)
        (folder / "suite.toml").write_text('name = "faq"\n[kb]\non_bad_card = "reject"\nrejected_share = 1.0\n')
        judged_by = suite_at(load_suite(Path("suites/faq")), "main")
        assert (judged_by.kb.on_bad_card, judged_by.kb.rejected_share) == ("reject" if allowed else "refuse", allowed)
        assert edits_policy(load_suite(Path("suites/faq")), "main", None)


@pytest.mark.slow
def test_dubious_ownership_and_a_shallow_clone_are_told_as_what_they_are(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_count = [("one", "1"), ("two", "2")]
    for name, text in commit_count:
        (top / name).write_text(text)
        commit(top)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{top}", str(shallow))
    assert (is_shallow(shallow), is_shallow(top)) == (True, False)
    with pytest.raises(InputError, match="this clone is shallow: git fetch --unshallow origin"):
        suite_at(load_suite(shallow / "suites" / "faq"), "origin/other")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert "dubious ownership" in refusal("suites/faq")
    assert f"git config --global --add safe.directory {os.path.realpath(top)}" in refusal("suites/faq")
    with pytest.raises(InputError, match="dubious ownership"):
        suite_at(load_suite(Path("suites/faq")), "main")


def test_other_trouble_is_told_in_gits_own_last_line() -> None:
    failed = subprocess.CompletedProcess(["git"], 128, b"", b"hint: x\nfatal: bad index\n")
    assert trouble_of(failed) == "git says: fatal: bad index"
    assert trouble_of(subprocess.CompletedProcess(["git"], 3, b"", b"")) == "git says: exit 3"
