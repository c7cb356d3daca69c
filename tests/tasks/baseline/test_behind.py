"""A branch that lacks what its target accepted is told so, with the command that brings it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbgate.tasks.baseline.behind import behind
from kbgate.tasks.baseline.review import commit_of, target_suite
from kbgate.tasks.errors import InputError
from kbgate.tasks.inputs.suite import load_suite
from tests.conftest import write_lines
from tests.tasks.baseline.test_checkout import commit, git, suite_in


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite in a repository, with a branch `change` checked out that stands where `main` does."""
    folder = suite_in(tmp_path / "repo" / "suites" / "faq")
    git(tmp_path / "repo", "init", "-q", "-b", "main")
    commit(tmp_path / "repo")
    git(tmp_path / "repo", "checkout", "-q", "-b", "change")
    return folder


def told(suite: Path, ref: str = "main") -> str:
    own = load_suite(suite)
    return behind(own, target_suite(own, ref), commit_of(own.folder, ref), ref)


def on_main(suite: Path, name: str, text: str = "x\n") -> None:
    """A file that the target changes, and the branch does not have."""
    git(suite, "checkout", "-q", "main")
    (suite / name).write_text(text)
    commit(suite)
    git(suite, "checkout", "-q", "change")


def test_a_branch_that_has_all_of_its_target_is_not_behind(suite: Path) -> None:
    write_lines(suite / "cards.jsonl", [{"id": "d", "text": "d"}])
    commit(suite)
    assert told(suite) == ""


@pytest.mark.parametrize("name", ["cards.jsonl", "golden.jsonl", "baseline.json", "baseline.cards.parquet"])
def test_what_the_target_changed_is_named_with_the_command_that_merges(name: str, suite: Path) -> None:
    on_main(suite, name)
    sentence = told(suite)
    assert f"main changed suites/faq/{name} since this branch left it" in sentence
    assert sentence.endswith("git merge main")
    git(suite, "checkout", "main", "--", f"./{name}")
    assert told(suite) == "", "what stands there as in the target is not missing"


def test_settings_the_target_changed_and_where_it_has_its_cards(suite: Path) -> None:
    on_main(suite, "suite.toml", 'name = "faq"\n[kb]\npath = "other.jsonl"\n')
    on_main(suite, "other.jsonl")
    assert "suites/faq/other.jsonl, suites/faq/suite.toml" in told(suite)


@pytest.mark.parametrize("name", ["queries.jsonl", "qrels/test.tsv"])
def test_questions_and_judgments_that_stand_beside_the_cards_are_missed(name: str, suite: Path) -> None:
    git(suite, "rm", "-q", "golden.jsonl")
    (suite / "qrels").mkdir()
    write_lines(suite / "queries.jsonl", [{"_id": "a", "text": "a?"}])
    (suite / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\na\tc\t1\n")
    commit(suite)
    git(suite, "branch", "-f", "main")
    on_main(suite, name)
    assert f"main changed suites/faq/{name} since" in told(suite)


def test_what_is_no_part_of_the_suite_leaves_nobody_behind(suite: Path) -> None:
    on_main(suite, "README.md")
    assert told(suite) == ""


def test_a_merge_ends_it(suite: Path) -> None:
    on_main(suite, "baseline.json")
    git(suite, "merge", "-q", "-m", "merge", "main")
    assert told(suite) == ""


def test_without_the_commit_where_both_part_nothing_is_guessed(suite: Path, tmp_path: Path) -> None:
    on_main(suite, "baseline.json")
    (suite / "notes").write_text("")
    commit(suite)
    shallow = tmp_path / "shallow"
    git(
        tmp_path,
        "clone",
        "-q",
        "--depth",
        "1",
        "--no-single-branch",
        "-b",
        "change",
        f"file://{tmp_path / 'repo'}",
        str(shallow),
    )
    with pytest.raises(InputError, match="this clone is shallow and lacks the commit") as refused:
        told(shallow / "suites" / "faq", "origin/main")
    assert refused.value.exit_code == 2
    git(suite, "checkout", "-q", "--orphan", "new")
    commit(suite)
    with pytest.raises(InputError, match="have no commit in common"):
        told(suite)
