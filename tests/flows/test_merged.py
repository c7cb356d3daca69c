"""`kbgate pull-request --merged`: the merge is judged, before anybody makes it and without a checkout of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import edit_lines, read_lines, write_lines, write_suite
from tests.tasks.baseline.test_checkout import commit, git

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jetty", "knoll", "larch")
CLI = Callable[..., int]


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a suite of twelve questions, accepted and committed on `main`; `change` is checked out there."""
    from kbgate.flows.__main__ import run

    top = tmp_path_factory.mktemp("merged") / "repo"
    suite = write_suite(top / "suites" / "woods", "bm25", {word: f"{word} stands by the water" for word in WORDS})
    git(top, "init", "-q", "-b", "main")
    commit(top)
    assert run(["baseline", "update", str(suite), "--reason", "first"]) == 0
    commit(top)
    git(top, "checkout", "-q", "-b", "change")
    return top


@pytest.fixture
def suite(accepted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The suite in a copy of that repository, which is the working directory."""
    top = Path(shutil.copytree(accepted, tmp_path / "repo"))
    monkeypatch.chdir(top)
    monkeypatch.setenv("KBGATE_HOME", str(tmp_path / "home"))
    return top / "suites" / "woods"


def on_main(suite: Path, name: str, text: str, kbgate: CLI) -> None:
    """The target gets another text on a card, and accepts what comes of it."""
    git(suite, "checkout", "-q", "main")
    edit_lines(suite / "cards.jsonl", lambda card: {**card, "text": text} if card["id"] == name else card)
    assert kbgate("baseline", "update", suite, "--reason", "another text") == 0
    commit(suite.parent.parent)
    git(suite, "checkout", "-q", "change")


def change(suite: Path, *texts: str) -> None:
    """The branch gets cards of these texts."""
    new = [{"id": f"new-{n}", "title": "", "text": text} for n, text in enumerate(texts)]
    write_lines(suite / "cards.jsonl", [*new, *read_lines(suite / "cards.jsonl")])
    commit(suite.parent.parent)


def verdict(home: Path) -> tuple[dict[str, Any], str]:
    """The one verdict of a home but the first acceptances', and its comment."""
    file = max(home.glob("runs/*/*/comment.md"), key=lambda path: path.stat().st_mtime_ns)
    return json.loads((file.parent / "verdict.json").read_text()), file.read_text()


def test_a_branch_behind_its_target_is_judged_as_it_will_be_merged(
    suite: Path, tmp_path: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    on_main(suite, "larch", "larch stands by the water, and reads better now", kbgate)
    change(suite, "nothing of the kind")
    assert kbgate("pull-request", suite, "--baseline-ref", "main") == 3
    status = {path: path.read_bytes() for path in suite.rglob("*")}
    capsys.readouterr()
    assert kbgate("pull-request", suite, "--baseline-ref", "main", "--merged") == 0
    document, comment = verdict(tmp_path / "home")
    pair = document["provenance"]["merged"]
    commits = [git_says(suite, "rev-parse", name) for name in ("main", "change")]
    assert [pair["target"], pair["change"]] == commits
    assert pair["tree"] == git_says(suite, "merge-tree", "--write-tree", "main", "change")
    assert document["provenance"]["commit"] == {"hash": commits[1], "dirty": False}
    assert document["counts"]["cards"] == len(WORDS) + 1
    assert "the merge, which nobody has made yet" in comment
    assert f"the merge of {commits[1][:10]} with main ({commits[0][:10]})" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in suite.rglob("*")} == status


def git_says(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_two_changes_that_are_harmless_apart_are_red_together(suite: Path, tmp_path: Path, kbgate: CLI) -> None:
    """The target has one long sentence of a larch, the branch three poles of larch: only the merge loses the answer."""
    longer = "a tamarack, which is a larch of another sort and kind than any that one could ever hope to come across here"
    git(suite, "checkout", "-q", "main")
    edit_lines(suite / "cards.jsonl", lambda card: {**card, "title": "", "text": longer} if card["id"] == "larch" else card)
    assert kbgate("baseline", "update", suite, "--reason", "longer") == 0
    commit(suite.parent.parent)
    git(suite, "checkout", "-q", "change")
    change(suite, "larch pole", "pole of larch", "poles, of larch")
    assert kbgate("evaluate", suite) == 0
    assert kbgate("pull-request", suite, "--baseline-ref", "main", "--merged") == 1
    document, _ = verdict(tmp_path / "home")
    assert document["newly_failing"] == ["larch"]


def test_what_git_cannot_merge_is_not_judged_and_names_the_file(suite: Path, tmp_path: Path, kbgate: CLI) -> None:
    on_main(suite, "amber", "amber stands by the water since", kbgate)
    edit_lines(suite / "cards.jsonl", lambda c: {**c, "text": "amber lies by the water"} if c["id"] == "amber" else c)
    commit(suite.parent.parent)
    assert kbgate("pull-request", suite, "--baseline-ref", "main", "--merged") == 3
    document, comment = verdict(tmp_path / "home")
    assert (document["code"], document["verdict"]) == ("behind", "INCONCLUSIVE")
    assert "both changed suites/woods/cards.jsonl; merge it by hand: git merge main" in document["reasons"][0]["sentence"]
    assert "merged" not in document["provenance"], "what was asked is what is checked out"
    assert "nobody has made yet" not in comment


def test_a_merge_is_no_state_of_the_suite(suite: Path, tmp_path: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    """Its verdict opens no door, is not what an ingest finds judged already, and is nothing that came in is counted from."""
    (suite / "suite.toml").write_text((suite / "suite.toml").read_text() + "[gates]\n")
    git(suite, "commit", "-qam", "settings that rank alike, and a full set")
    change(suite, "nothing of the kind")
    history = tmp_path / "home" / "history"
    assert kbgate("pull-request", suite, "--baseline-ref", "main", "--merged") == 0
    assert not list(history.glob("*"))
    document, _ = verdict(tmp_path / "home")
    run = next((tmp_path / "home").glob(f"runs/*/{document['run']}"))
    capsys.readouterr()
    index = document["fingerprints"]["index"]
    assert kbgate("gate", suite, "--verdict", run / "verdict.json", "--index-fingerprint", index) == 1
    assert "it is of a merge that is not checked out" in capsys.readouterr().err
    assert kbgate("ingested", suite) == 0
    assert "nothing changed since" not in capsys.readouterr().err


@pytest.mark.parametrize("option", [[], ["--merged"]])
def test_a_verdict_says_of_which_tree_it_is(option: list[str], suite: Path, tmp_path: Path, kbgate: CLI) -> None:
    change(suite, "nothing of the kind")
    assert kbgate("pull-request", suite, "--baseline-ref", "main", *option) == 0
    document, _ = verdict(tmp_path / "home")
    assert ("merged" in document["provenance"]) == bool(option)


def test_what_is_not_committed_is_said_to_be_left_out(suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    change(suite, "nothing of the kind")
    edit_lines(suite / "cards.jsonl", lambda card: {**card, "text": ""})
    assert kbgate("pull-request", suite, "--baseline-ref", "main", "--merged") == 2
    assert "cards.jsonl stands here as it is in none; commit it, or leave out --merged" in capsys.readouterr().err
