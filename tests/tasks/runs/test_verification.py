"""A run is recomputed from its rankings; whatever number of its files is edited, it is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kbgate.tasks.runs.document import VerdictDocument
from kbgate.tasks.runs.runfiles import digests_of, sealed
from tests.conftest import edit_lines, edit_text, write_suite

CLI = Callable[..., int]


@pytest.fixture(scope="module")
def examined(home: Path, quarter: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A suite that lost a card, and the run that said so; examined once for all tests."""
    from kbgate.flows import evaluate

    suite = Path(shutil.copytree(quarter, tmp_path_factory.mktemp("verified") / "medication"))
    edit_lines(suite / "cards.jsonl", lambda row: None if row["id"] == "epilepsy-missed" else row)
    return suite, evaluate.run(str(suite), home=str(home)).folder


@pytest.fixture
def done(examined: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(examined[1], tmp_path / "run"))


def edit_verdict(folder: Path, edit: Callable[[dict[str, Any]], None], reseal: bool = True) -> None:
    document = json.loads((folder / "verdict.json").read_text())
    edit(document)
    if reseal:
        document = sealed(VerdictDocument.of(document), digests_of(folder)).plain()
    (folder / "verdict.json").write_text(json.dumps(document))


def edit_table(folder: Path, name: str, column: str, value: float) -> None:
    table = pd.read_parquet(folder / name)
    table.loc[table.index[3], column] = value
    table.to_parquet(folder / name, index=False)


def test_an_untouched_run_is_what_its_rankings_say(done: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbgate("verify", done) == 0
    assert "and the verdict BLOCK follow from the rankings" in capsys.readouterr().out


@pytest.mark.parametrize("resealed", [False, True])
@pytest.mark.parametrize(
    "edit",
    [
        lambda folder: edit_verdict(folder, lambda d: d["figures"][7].update(current=0.99), False),
        lambda folder: edit_verdict(folder, lambda d: d["figures"][7].update(n=1), False),
        lambda folder: edit_verdict(folder, lambda d: d["figures"][7].update(high=0.5), False),
        lambda folder: edit_verdict(folder, lambda d: d.update(verdict="PASS", exit_code=0), False),
        lambda folder: edit_verdict(folder, lambda d: d.update(reasons=[]), False),
        lambda folder: edit_verdict(folder, lambda d: d["cases"].update(asked=12), False),
        lambda folder: edit_verdict(folder, lambda d: d["inputs"]["asked"].pop(), False),
        lambda folder: edit_table(folder, "scores.parquet", "value", 0.123),
        lambda folder: edit_table(folder, "run.parquet", "rank", 77),
        lambda folder: edit_text(folder / "run.trec", " 1 1000 ", " 1 999 "),
    ],
)
def test_any_edited_number_is_found(edit: Callable[[Path], None], resealed: bool, done: Path, kbgate: CLI) -> None:
    edit(done)
    if resealed:
        edit_verdict(done, lambda document: None)
    assert kbgate("verify", done) == 1


@pytest.mark.parametrize("name", ["report.md", "qrels.trec", "cards.parquet", "run.parquet"])
def test_a_file_that_is_gone_or_changed_is_found(name: str, done: Path, kbgate: CLI) -> None:
    (done / name).write_bytes((done / name).read_bytes() + b"\n")
    assert kbgate("verify", done) == 1
    (done / name).unlink()
    assert kbgate("verify", done) == 1


def test_what_only_the_seal_guards(done: Path, kbgate: CLI) -> None:
    edit_verdict(done, lambda d: d["counts"].update(chunks=9), reseal=False)
    assert kbgate("verify", done) == 1


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda d: d.update(mode="fast"), "a fast run asks the"),
        (lambda d: d.update(method="dense"), "method says dense, is hybrid"),
        (lambda d: d["counts"].update(cards=9), "counts.cards says 9, is "),
        (lambda d: d["counts"].update(cases=9), "counts.cases says 9, is "),
    ],
)
def test_what_the_suites_files_say_is_held_against_them_whatever_the_seal(
    edit: Callable[[dict[str, Any]], None], told: str, done: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_verdict(done, edit)
    assert kbgate("verify", done) == 1
    assert told in capsys.readouterr().out


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda d: d["counts"].update(chunks=9), "counts (9 chunks"),
        (lambda d: d["provenance"].update(commit={"hash": "f" * 40, "dirty": False}), "commit ffffffffffff)"),
        (lambda d: d.update(build="another"), "build (another)"),
        (lambda d: d["fingerprints"].update(index="f" * 16), "fingerprints (index ffffffffffffffff)"),
        (lambda d: None, "mode (full)"),
    ],
)
def test_what_a_new_seal_hides_is_told_as_not_recomputed(
    edit: Callable[[dict[str, Any]], None], told: str, done: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_verdict(done, edit)
    assert kbgate("verify", done) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("not recomputed: run, "))
    assert told in line
    assert line.endswith("nothing but the seal says so, and whoever edits can seal again")


def test_a_comment_that_was_edited_or_is_gone_is_found(done: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    (done / "comment.md").write_text("PASS")
    assert kbgate("verify", done) == 1
    assert "comment.md was not written by the run" in capsys.readouterr().out
    edit_verdict(done, lambda document: None)
    (done / "comment.md").unlink()
    assert kbgate("verify", done) == 1
    assert "comment.md is gone" in capsys.readouterr().out


def test_a_run_is_verified_from_any_folder(tmp_path: Path, kbgate: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite's folder was typed where the run was made: it is found from there, too."""
    write_suite(tmp_path / "there" / "suites" / "faq", "bm25", {"a": "one thing", "b": "another matter"})
    monkeypatch.chdir(tmp_path / "there")
    monkeypatch.setenv("KBGATE_HOME", ".kbgate")
    assert kbgate("evaluate", "suites/faq") == 3
    (run,) = (tmp_path / "there" / ".kbgate" / "runs").glob("*/*")
    assert kbgate("verify", run) == 0
    monkeypatch.chdir(run)
    assert kbgate("verify", ".") == 0
    write_suite(tmp_path / "elsewhere" / "suites" / "faq", "bm25", {"a": "one thing", "b": "something else"})
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert kbgate("verify", run) == 2, "what stands here as it was typed goes first, and is not what the run saw"
    (tmp_path / "elsewhere" / "suites").rename(tmp_path / "elsewhere" / "other")
    assert kbgate("verify", run) == 0


def test_a_suite_that_is_nowhere_is_named_with_the_command(
    tmp_path: Path, done: Path, kbgate: CLI, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    edit_verdict(done, lambda d: d["inputs"].update(suite="suites/gone"))
    assert kbgate("verify", done) == 2
    assert f"suites/gone: is nowhere to be found, from here or beside {done}; next: kbgate verify" in capsys.readouterr().err


def test_other_inputs_are_said_not_guessed(
    examined: tuple[Path, Path], done: Path, tmp_path: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = Path(shutil.copytree(examined[0], tmp_path / "other"))
    edit_text(suite / "suite.toml", "contract = {tolerance = 0.02}", "contract = {tolerance = 0.5}")
    assert kbgate("verify", done, "--suite", suite) == 2
    assert "its policy was" in capsys.readouterr().err
    assert kbgate("verify", done / "nowhere") == 2
