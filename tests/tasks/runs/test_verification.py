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
from tests.conftest import edit_lines, edit_text

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


def test_other_inputs_are_said_not_guessed(
    examined: tuple[Path, Path], done: Path, tmp_path: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = Path(shutil.copytree(examined[0], tmp_path / "other"))
    edit_text(suite / "suite.toml", "contract = {tolerance = 0.02}", "contract = {tolerance = 0.5}")
    assert kbgate("verify", done, "--suite", suite) == 2
    assert "its policy was" in capsys.readouterr().err
    assert kbgate("verify", done / "nowhere") == 2
