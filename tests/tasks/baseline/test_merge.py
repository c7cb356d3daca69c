"""What git makes of a branch and its target is read as a checkout of it would be, and leaves nothing behind."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kbgate.tasks.baseline.merge import merge_with
from kbgate.tasks.baseline.review import baseline_at, commit_of, suite_at
from kbgate.tasks.errors import InputError, Unmeasured
from kbgate.tasks.git import run_git
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.golden import load_golden
from kbgate.tasks.inputs.suite import load_suite
from tests.conftest import read_lines, write_lines
from tests.tasks.baseline.test_behind import on_main, suite
from tests.tasks.baseline.test_checkout import commit, git

__all__ = ["suite"]


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made: a place of the test's own, to be looked into."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def add_card(suite: Path, name: str) -> None:
    write_lines(suite / "cards.jsonl", [*read_lines(suite / "cards.jsonl"), {"id": name, "text": name}])


def own_card(suite: Path) -> None:
    """A commit of the branch, so that there is something to merge."""
    write_lines(suite / "cards.jsonl", [{"id": "own", "text": "own"}, *read_lines(suite / "cards.jsonl")])
    commit(suite)


def refusal(suite: Path, ref: str = "main") -> str:
    with pytest.raises(InputError) as refused, merge_with(load_suite(suite), ref):
        pass
    assert refused.value.exit_code == 2
    return str(refused.value)


def written(suite: Path, ref: str = "main") -> list[str]:
    """Every file that is written out, as paths from the repository's top."""
    with merge_with(load_suite(suite), ref) as merge:
        assert not merge.conflict
        top = next(folder for folder in merge.suite.folder.parents if (folder / ".git").exists())
        files = (path.relative_to(top) for path in top.rglob("*") if path.is_file())
        return sorted(path.as_posix() for path in files if path.parts[0] != ".git")


def test_both_sides_are_in_the_merge_and_nothing_is_left_of_it(suite: Path, scratch: Path) -> None:
    on_main(suite, "golden.jsonl", '{"id": "b", "query": "b?", "must_cite_one_of": ["c"]}\n')
    own_card(suite)
    top = suite.parent.parent
    before = {path: path.read_bytes() for path in top.rglob("*") if path.is_file()}
    with merge_with(load_suite(suite), "main") as merge:
        assert set(load_cards(merge.suite).cards) == {"own", "c"}
        assert set(load_golden(merge.suite).cases) == {"b"}
        assert (merge.suite.given, merge.suite.name) == (str(suite), "faq")
        assert (merge.commits.target, merge.commits.change) == (commit_of(suite, "main"), commit_of(suite, "HEAD"))
        # Whatever asks git about the suite is answered as in a checkout of the merge.
        assert suite_at(merge.suite, merge.commits.target).name == "faq"
        assert baseline_at(merge.suite, merge.commits.target) is None
        assert run_git(merge.suite.folder, "status", "--porcelain", "--", ".").stdout == b""
        assert run_git(merge.suite.folder, "rev-parse", "HEAD^{tree}").stdout.decode().strip() == merge.commits.tree
        again = merge.commits
    assert list(scratch.iterdir()) == []
    assert {path: path.read_bytes() for path in top.rglob("*") if path.is_file()} == before
    with merge_with(load_suite(suite), "main") as merge:
        assert merge.commits == again


def test_nothing_is_left_of_it_where_an_exam_fails(suite: Path, scratch: Path) -> None:
    own_card(suite)

    def fail() -> None:
        with merge_with(load_suite(suite), "main"):
            assert list(scratch.iterdir())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(scratch.iterdir()) == []


def test_only_what_is_read_of_the_suite_is_written_out(suite: Path) -> None:
    on_main(suite, "notes.txt")
    (suite.parent / "large.bin").write_bytes(b"x" * 100_000)
    own_card(suite)
    assert written(suite) == ["suites/faq/cards.jsonl", "suites/faq/golden.jsonl", "suites/faq/suite.toml"]


def test_cards_are_taken_from_where_the_merge_has_them(suite: Path) -> None:
    """The target moves the cards out of the suite's folder, the branch adds a question."""
    on_main(suite, "suite.toml", 'name = "faq"\n[kb]\npath = "../../shared"\n')
    git(suite, "checkout", "-q", "main")
    (suite.parent.parent / "shared").mkdir()
    (suite.parent.parent / "shared" / "one.md").write_text("# One\n\ntext\n")
    commit(suite.parent.parent)
    git(suite, "checkout", "-q", "change")
    write_lines(suite / "golden.jsonl", [{"id": "a", "query": "one?", "must_cite_one_of": ["one"]}])
    commit(suite)
    assert "shared/one.md" in written(suite)
    with merge_with(load_suite(suite), "main") as merge:
        assert set(load_cards(merge.suite).cards) == {"one"}


def test_a_model_beside_the_suite_is_written_out_too(suite: Path) -> None:
    (suite / "model").mkdir()
    (suite / "model" / "config.json").write_text("{}")
    (suite / "suite.toml").write_text('name = "faq"\n[embedding]\nmodel = "model"\n')
    commit(suite)
    assert "suites/faq/model/config.json" in written(suite)


def test_questions_in_beir_form_stand_beside_the_cards(suite: Path) -> None:
    git(suite, "rm", "-q", "golden.jsonl")
    write_lines(suite / "corpus.jsonl", [{"_id": "c", "title": "", "text": "c"}])
    write_lines(suite / "queries.jsonl", [{"_id": "a", "text": "a?"}])
    (suite / "qrels").mkdir()
    (suite / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\na\tc\t1\n")
    (suite / "suite.toml").write_text('name = "faq"\n[kb]\npath = "corpus.jsonl"\n')
    commit(suite)
    with merge_with(load_suite(suite), "main") as merge:
        assert set(load_golden(merge.suite).cases) == {"a"}


def test_what_both_changed_is_named_with_the_command_that_merges(suite: Path, scratch: Path) -> None:
    on_main(suite, "golden.jsonl", '{"id": "b", "query": "theirs?", "must_cite_one_of": ["c"]}\n')
    (suite / "golden.jsonl").write_text('{"id": "b", "query": "ours?", "must_cite_one_of": ["c"]}\n')
    commit(suite)
    with merge_with(load_suite(suite), "main") as merge:
        assert merge.conflict.endswith("both changed suites/faq/golden.jsonl; merge it by hand: git merge main")
        assert merge.suite.folder == suite
    assert list(scratch.iterdir()) == []


def test_a_file_one_side_took_away_and_the_other_changed_is_a_conflict(suite: Path) -> None:
    git(suite, "checkout", "-q", "main")
    git(suite, "rm", "-q", "cards.jsonl")
    commit(suite)
    git(suite, "checkout", "-q", "change")
    own_card(suite)
    with merge_with(load_suite(suite), "main") as merge:
        assert "suites/faq/cards.jsonl" in merge.conflict


def test_a_suite_the_target_took_away_is_not_there_in_the_merge(suite: Path) -> None:
    git(suite, "checkout", "-q", "main")
    git(suite, "rm", "-q", "-r", ".")
    git(suite.parent.parent, "commit", "-qm", "no suite")
    git(suite.parent.parent, "checkout", "-q", "change")
    (suite.parent / "README.md").write_text("elsewhere")
    commit(suite)
    assert "is not in the merge with main, which took it away" in refusal(suite)


def test_what_is_not_committed_is_refused_since_it_would_not_be_examined(suite: Path) -> None:
    own_card(suite)
    add_card(suite, "unseen")
    told = refusal(suite)
    assert "suites/faq/cards.jsonl stands here as it is in none; commit it, or leave out --merged" in told
    git(suite, "add", "cards.jsonl")
    assert refusal(suite) == told, "what is only staged is in no commit either"
    git(suite, "checkout", "HEAD", "--", "cards.jsonl")
    (suite / "notes.txt").write_text("nobody reads this")
    assert "suites/faq/cards.jsonl" in written(suite)


def test_a_branch_with_nothing_of_its_own_is_not_compared_with_itself(suite: Path) -> None:
    assert "'main' holds all that is checked out" in refusal(suite)
    on_main(suite, "golden.jsonl")
    assert "'main' holds all that is checked out" in refusal(suite)


def test_without_history_nothing_is_merged(suite: Path, tmp_path: Path) -> None:
    own_card(suite)
    shallow, there = tmp_path / "shallow", f"file://{tmp_path / 'repo'}"
    git(tmp_path, "clone", "-q", "--depth", "1", "--no-single-branch", "-b", "change", there, str(shallow))
    assert refusal(shallow / "suites" / "faq", "origin/main").endswith("git fetch --unshallow origin")
    git(suite, "checkout", "-q", "--orphan", "new")
    commit(suite)
    assert "have no commit in common" in refusal(suite)


def stand_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git that does what a test needs, and otherwise what git does."""
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\n{script}\nexec {shutil.which("git")} "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_an_older_git_is_told_to_merge_by_hand(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_card(suite)
    stand_in(tmp_path / "bin", 'test "$3" = version && echo git version 2.37.4 && exit', monkeypatch)
    told = "--merged: git 2.37 cannot merge without a checkout, and git 2.38 can; merge by hand, without it: git merge main"
    assert refusal(suite) == told


def linked(suite: Path) -> None:
    (suite / "cards.jsonl").unlink()
    (suite / "cards.jsonl").symlink_to("/etc/passwd")


def submodule(suite: Path) -> None:
    (suite / "cards.jsonl").unlink()
    shutil.copytree(suite.parent.parent / ".git", suite / "cards.jsonl" / ".git")


@pytest.mark.parametrize("change", [linked, submodule])
def test_a_link_or_a_submodule_that_comes_with_the_target_is_not_followed(change: Callable[[Path], None], suite: Path) -> None:
    git(suite, "checkout", "-q", "main")
    change(suite)
    commit(suite)
    shutil.rmtree(suite / "cards.jsonl") if (suite / "cards.jsonl").is_dir() else None
    git(suite, "checkout", "-q", "-f", "change")
    write_lines(suite / "golden.jsonl", [{"id": "b", "query": "b?", "must_cite_one_of": ["c"]}])
    commit(suite)
    assert "suites/faq/cards.jsonl: is a link or a submodule in the merge" in refusal(suite)


def test_cards_outside_the_repository_are_not_read(suite: Path) -> None:
    on_main(suite, "suite.toml", 'name = "faq"\n[kb]\npath = "../../../elsewhere.jsonl"\n')
    own_card(suite)
    assert "../../../elsewhere.jsonl: is outside the repository in the merge" in refusal(suite)


def test_files_are_written_as_the_checkouts_own_settings_say(suite: Path) -> None:
    """Git LFS is such a filter: without it a pointer would be examined."""
    git(suite, "config", "filter.spell.smudge", "sed s/pointer/content/")
    git(suite, "config", "filter.spell.clean", "sed s/content/pointer/")
    (suite / ".gitattributes").write_text("cards.jsonl filter=spell\n")
    write_lines(suite / "cards.jsonl", [{"id": "c", "text": "content"}])
    commit(suite)
    assert run_git(suite, "show", "HEAD:./cards.jsonl").stdout == b'{"id": "c", "text": "pointer"}\n'
    with merge_with(load_suite(suite), "main") as merge:
        assert load_cards(merge.suite).cards["c"].text == "content"


def test_a_filter_that_fails_ends_it(suite: Path) -> None:
    (suite / ".gitattributes").write_text("cards.jsonl filter=spell\n")
    own_card(suite)
    for part, program in (("clean", "cat"), ("smudge", "false"), ("required", "true")):
        git(suite, "config", f"filter.spell.{part}", program)
    told = r"git says: .*cards\.jsonl"
    with pytest.raises(Unmeasured, match=told), merge_with(load_suite(suite), "main"):
        pass


def test_it_is_the_suites_repository_in_a_hook_of_another_too(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_card(suite)
    git(tmp_path, "init", "-q", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    with merge_with(load_suite(suite), "main") as merge:
        assert set(load_cards(merge.suite).cards) == {"own", "c"}
    assert not (tmp_path / "other" / ".git" / "index").exists()


def test_a_second_working_tree_is_merged_from_where_it_stands(suite: Path, tmp_path: Path) -> None:
    own_card(suite)
    git(suite, "worktree", "add", "-q", "-b", "second", str(tmp_path / "second"), "change")
    folder = tmp_path / "second" / "suites" / "faq"
    add_card(folder, "late")
    commit(folder)
    with merge_with(load_suite(folder), "main") as merge:
        assert set(load_cards(merge.suite).cards) == {"own", "c", "late"}
