"""What git has of the cards that the baseline was made of: a file or a folder, wherever it stands, and nothing else."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kbgate.tasks.baseline.recovery import recover_cards
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.studies.trial import accept, trial_of
from tests.conftest import write_lines

PAGES = {
    "permit.md": "---\ntitle: Permits\nvalid_until: 2027-01-01\n---\nA parking permit costs twelve euros.\n",
    "deep/lift.md": "# The lift\nThe lift is inspected every spring.\n",
    "cellar.txt": "The office keeps its archive in the cellar.\r\nBoxes are numbered.\r\n",
}


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def suite_at(folder: Path, settings: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.toml").write_text(f'name = "faq"\nas_of = 2026-06-01\n[kb]\n{settings}')
    write_lines(folder / "golden.jsonl", [{"id": "a", "query": "parking permit euros", "expected": ["permit"]}])
    return folder


def write_pages(folder: Path) -> None:
    for name, text in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    git(tmp_path / "repo", "init", "-q", "-b", "main")
    return tmp_path / "repo"


def commit(top: Path, *suites: Path) -> None:
    """As an acceptance leaves it: the baseline beside the cards."""
    for suite in suites:
        (suite / "baseline.json").write_text("{}")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "x")


@pytest.mark.parametrize(
    ("where", "path"), [("suites/faq/pages", "pages"), ("docs", "../../docs"), ("suites/faq/pages", "./pages/")]
)
def test_a_folder_is_recovered_as_it_was(
    where: str, path: str, top: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = suite_at(top / "suites" / "faq", f'path = "{path}"\n')
    write_pages(top / where)
    (tmp_path / "secret.md").write_text("secret")
    (top / where / "link.md").symlink_to(tmp_path / "secret.md")
    suite = load_suite(folder)
    cards = load_cards(suite).cards
    commit(top, folder)
    (top / where / "permit.md").write_text("Gone.")
    (top / where / "deep" / "lift.md").unlink()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    recovered = recover_cards(suite).cards
    assert {card.id: card.hash for card in recovered.values()} == {card.id: card.hash for card in cards.values()}
    assert set(recovered) == {"permit", "deep/lift", "cellar"}
    assert list((tmp_path / "temporary").iterdir()) == []


def test_it_is_read_as_its_own_commit_says(top: Path) -> None:
    """The folder was renamed since, its files are typed and one of them is left out."""
    folder = suite_at(top / "faq", 'path = "old"\nexclude = ["deep"]\n')
    write_pages(folder / "old")
    commit(top, folder)
    git(top, "mv", "faq/old", "faq/new")
    suite_at(folder, 'path = "new"\n')
    git(top, "commit", "-qam", "renamed")
    assert set(recover_cards(load_suite(folder)).cards) == {"permit", "cellar"}


@pytest.mark.parametrize("name", ["cards.jsonl", "corpus.jsonl"])
def test_a_file_of_many_cards_is_recovered_too(name: str, top: Path) -> None:
    folder = suite_at(top / "faq", 'path = "kb"\n' if name == "corpus.jsonl" else f'path = "kb/{name}"\n')
    (folder / "kb").mkdir()
    write_lines(folder / "kb" / name, [{"_id" if name == "corpus.jsonl" else "id": "permit", "text": "twelve euros"}])
    commit(top, folder)
    (folder / "kb" / name).write_text("")
    assert recover_cards(load_suite(folder)).cards["permit"].text == "twelve euros"


def test_a_pointer_is_no_card_and_hides_no_other(top: Path) -> None:
    folder = suite_at(top / "faq", 'path = "pages"\n')
    write_pages(folder / "pages")
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12\n"
    (folder / "pages" / "permit.md").write_text(pointer)
    commit(top, folder)
    recovery = recover_cards(load_suite(folder))
    assert set(recovery.cards) == {"deep/lift", "cellar"}
    assert "permit.md" in recovery.trouble
    assert "LFS" in recovery.trouble


def test_a_folder_of_more_files_than_are_asked_for_at_once(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbgate.tasks.baseline.recovery._FILES_AT_ONCE", 2)
    folder = suite_at(top / "faq", 'path = "pages"\n')
    write_pages(folder / "pages")
    (folder / "pages" / "empty.md").write_text("")
    commit(top, folder)
    recovery = recover_cards(load_suite(folder))
    assert {card.id: card.text for card in recovery.cards.values()}["deep/lift"].startswith("# The lift")
    assert len(recovery.cards) == 3


def uncommitted(top: Path) -> Path:
    folder = suite_at(top / "faq", 'path = "pages"\n')
    write_pages(folder / "pages")
    (folder / "baseline.json").write_text("{}")
    return folder


def unaccepted(top: Path) -> Path:
    folder = uncommitted(top)
    git(top, "add", "faq/suite.toml")
    git(top, "commit", "-qm", "x")
    return folder


def outside(top: Path) -> Path:
    folder = suite_at(top / "faq", 'path = "../../pages"\n')
    write_pages(top.parent / "pages")
    commit(top, folder)
    return folder


def absolute(top: Path) -> Path:
    write_pages(top / "pages")
    folder = suite_at(top / "faq", f'path = "{top}/pages"\n')
    commit(top, folder)
    return folder


def ignored(top: Path) -> Path:
    folder = suite_at(top / "faq", 'path = "pages"\n')
    write_pages(folder / "pages")
    (top / ".gitignore").write_text("pages\n")
    commit(top, folder)
    return folder


def no_repository(top: Path) -> Path:
    folder = suite_at(top.parent / "faq", 'path = "pages"\n')
    write_pages(folder / "pages")
    return folder


def linked(top: Path) -> Path:
    folder = suite_at(top / "faq", 'path = "pages"\n')
    write_pages(top.parent / "elsewhere")
    (folder / "pages").symlink_to(top.parent / "elsewhere")
    commit(top, folder)
    return folder


@pytest.mark.parametrize(
    ("arrange", "trouble"),
    [
        (uncommitted, "does not have any commits yet"),
        (unaccepted, "baseline.json is in no commit"),
        (outside, "is outside the repository"),
        (absolute, "is an absolute path, which no commit has"),
        (ignored, "has no pages"),
        (no_repository, "the suite is in no git repository"),
        (linked, "has no pages"),
    ],
)
def test_what_git_cannot_tell_is_said_and_why(arrange: Callable[[Path], Path], trouble: str, top: Path) -> None:
    recovery = recover_cards(load_suite(arrange(top)))
    assert recovery.cards == {}
    assert trouble in recovery.trouble


def test_a_shallow_clone_has_the_cards_of_another_day_and_is_told(top: Path, tmp_path: Path) -> None:
    folder = suite_at(top / "faq", 'path = "pages"\n')
    write_pages(folder / "pages")
    commit(top, folder)
    (folder / "pages" / "permit.md").write_text("Gone.")
    commit(top)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{top}", "shallow")
    recovery = recover_cards(load_suite(tmp_path / "shallow" / "faq"))
    assert recovery.cards["permit"].text == "Gone."
    assert "this clone is shallow: git fetch --unshallow" in recovery.trouble


def test_a_cause_in_a_folder_is_proven_on_a_machine_that_never_saw_it(top: Path, home: Path, tmp_path: Path) -> None:
    folder = suite_at(top / "faq", 'path = "pages"\n[retrieval]\nmethod = "bm25"\n')
    (folder / "suite.toml").write_text("top_k = 1\nk_values = [1]\n" + (folder / "suite.toml").read_text())
    write_pages(folder / "pages")
    (folder / "pages" / "rival.md").write_text("A parking place for bicycles, and a permit for each of them.")
    accept(folder, home)
    git(top, "add", "-A")
    git(top, "commit", "-qm", "accepted")
    (folder / "pages" / "permit.md").write_text("---\ntitle: Permits\nvalid_until: 2027-01-01\n---\nA permit.\n")
    (finding,) = trial_of(folder, tmp_path / "new-machine", 10).findings
    assert (finding.cause, finding.gold, finding.proven) == ("text_lost", "permit", True)
    (folder / "pages" / "permit.md").write_text("---\ntitle: Permits\nvalid_until: 2027-01-01\n---\n")
    git(top, "update-ref", "-d", "HEAD")
    (finding,) = trial_of(folder, tmp_path / "newer-machine", 10).findings
    assert (finding.cause, finding.proven) == ("text_lost", False)
    assert "is not kept here, and not in git: " in finding.sentence
