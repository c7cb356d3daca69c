"""The command line as its users meet it: exit codes, sentences, files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import MEDICATION, ROOT, edit_lines, edit_text, last_report, last_verdict, read_lines, run_named

CLI = Callable[..., int]
LOST = "epilepsy-missed"


def lose_a_card(suite: Path) -> None:
    edit_lines(suite / "cards.jsonl", lambda card: None if card["id"] == LOST else card)


def without_baseline(suite: Path) -> None:
    for file in suite.glob("baseline*"):
        file.unlink()


def test_a_healthy_suite_passes_and_leaves_its_files(medication: Path, kbgate: CLI, home: Path) -> None:
    before = sum(len(read_lines(file)) for file in home.glob("history/medication-*.jsonl"))
    assert kbgate("evaluate", medication) == 0
    verdict = last_verdict(home)
    folder = run_named(home, verdict["run"])
    assert {file.name for file in folder.iterdir()} - {"label_review.csv"} == {
        "verdict.json", "report.md", "run.parquet", "scores.parquet", "cards.parquet", "run.trec", "qrels.trec",
    }  # fmt: skip
    assert (folder / "label_review.csv").exists() == (verdict["diagnosis"]["doubts"] > 0)
    assert {*verdict["files"], "verdict.json"} == {file.name for file in folder.iterdir()}
    assert sum(len(read_lines(file)) for file in home.glob("history/medication-*.jsonl")) == before + 1
    assert verdict["outcomes"] == {"answered": len(read_lines(medication / "golden.jsonl"))}


def test_json_stands_alone_on_standard_output(medication: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbgate("evaluate", medication, "--json") == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["verdict"] == "PASS"
    assert "PASS medication, full set" in said.err


def test_a_lost_gold_card_blocks_naming_card_and_cases(medication: Path, kbgate: CLI, home: Path) -> None:
    lose_a_card(medication)
    assert kbgate("evaluate", medication) == 1
    first = last_verdict(home)["reasons"][0]["sentence"]
    assert f"card '{LOST}'" in first
    assert "seizure-skipped" in first
    assert LOST in last_report(home).split("\n")[0]


@pytest.mark.parametrize("command", ["check", "evaluate"])
def test_a_lost_gold_card_is_a_label_error_where_no_baseline_knew_it(
    command: str, medication: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    lose_a_card(medication)
    if command == "evaluate":
        without_baseline(medication)
    assert kbgate(command, medication) == 2
    lines = capsys.readouterr().err.splitlines()
    places = [n for n, case in enumerate(read_lines(medication / "golden.jsonl"), 1) if LOST in json.dumps(case)]
    assert len(lines) == len(places)
    assert all(f"golden.jsonl:{place}: gold '{LOST}'" in line for place, line in zip(places, lines, strict=True))


def test_a_missing_baseline_is_three_and_the_command_to_type(
    medication: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    without_baseline(medication)
    assert kbgate("evaluate", medication) == 3
    said = capsys.readouterr().err
    command = f'kbgate baseline update {medication} --reason "first baseline"'
    assert command in said
    assert kbgate(*command.split()[1:4], "--reason", "first baseline") == 0
    assert kbgate("evaluate", medication) == 0


def test_a_damaged_baseline_is_never_green(medication: Path, kbgate: CLI) -> None:
    lines = (medication / "baseline.cases.jsonl").read_text().splitlines(keepends=True)
    (medication / "baseline.cases.jsonl").write_text("".join(lines[:-1]))
    assert kbgate("evaluate", medication) == 2
    assert kbgate("check", medication) == 2
    (medication / "baseline.cases.jsonl").write_text("".join(lines)[:-80])
    assert kbgate("evaluate", medication) == 2
    (medication / "baseline.json").unlink()
    assert kbgate("evaluate", medication) == 2


@pytest.mark.parametrize(
    ("stage", "error"),
    [
        ("load_suite", RuntimeError("boom")),
        ("load_cards", KeyboardInterrupt()),
        ("ingest", MemoryError()),
        ("retrieve", SystemExit(1)),
        ("judge", OSError("disk")),
        ("write_run", ValueError("two\nlines")),
    ],
)
def test_an_exception_anywhere_is_four(
    stage: str,
    error: BaseException,
    medication: Path,
    kbgate: CLI,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from kbgate.tasks import stages

    def fail(*_args: object, **_kwargs: object) -> None:
        raise error

    monkeypatch.setattr(stages, stage, fail)
    assert kbgate("evaluate", medication) == 4
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert said.startswith("kbgate: ERROR: ")
    assert len(said.splitlines()) == 1


def test_a_run_that_fails_removes_its_store(
    medication: Path, kbgate: CLI, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from kbgate.tasks import stages

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    monkeypatch.setattr(stages, "retrieve", lambda *a, **k: 1 / 0)
    assert kbgate("evaluate", medication) == 4
    assert list((tmp_path / "temp").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate"], "Missing argument"),
        (["evaluate", "x", "--quick"], "No such option"),
        (["evalute", "x"], "No such command"),
        (["evaluate", "/nowhere"], "is no folder"),
        (["evaluate", str(MEDICATION), "--floor", "ndgc=0.5"], "did you mean 'ndcg'?"),
        (["evaluate", str(MEDICATION), "--floor", "ndcg=high"], "needs METRIC=NUMBER"),
        (["evaluate", str(MEDICATION), "--floor", "ndcg@7=0.5"], "7 is none of the computed cut-offs"),
        (["evaluate", str(MEDICATION), "--floor", "ndcg=nan"], "finite number"),
        (["evaluate", str(MEDICATION), "--floor", "ndcg=0.9", "--floor", "ndcg=0.1"], "is given twice"),
        (["baseline", "update", str(MEDICATION)], "--reason: is missing"),
    ],
)
def test_usage_is_two(arguments: list[str], said: str, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbgate(*arguments) == 2
    assert said in capsys.readouterr().err


def test_a_floor_of_the_command_line(medication: Path, kbgate: CLI, home: Path) -> None:
    assert kbgate("evaluate", medication, "--floor", "contract=0.75", "--floor", "ndcg@10=0.5") == 0
    assert kbgate("evaluate", medication, "--floor", "contract=0.95") == 1
    assert "below its floor of 0.95" in last_verdict(home)["reasons"][0]["sentence"]


def test_the_fast_subset_is_compared_with_its_own_rows(medication: Path, kbgate: CLI, home: Path) -> None:
    assert kbgate("evaluate", medication, "--fast") == 0
    verdict = last_verdict(home)
    assert (verdict["mode"], verdict["cases"]["asked"], verdict["cases"]["removed"]) == ("fast", 50, [])
    edit_lines(medication / "cards.jsonl", lambda card: {**card, "text": card["text"][:100]})
    assert kbgate("evaluate", medication, "--fast") == 1
    assert last_verdict(home)["provisional"]
    assert kbgate("baseline", "diff", medication) == 2


def test_help_shows_the_exit_codes(kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["evaluate", "--help"], ["check", "--help"], ["baseline", "update", "--help"]):
        assert kbgate(*arguments) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "0 PASS or WARN; 1 BLOCK" in said
        assert "4 ERROR" in said


def test_baseline_show_and_diff(kbgate: CLI, capsys: pytest.CaptureFixture[str], medication: Path) -> None:
    assert kbgate("baseline", "show", medication) == 0
    assert json.loads(capsys.readouterr().out)["suite"] == "medication"
    without_baseline(medication)
    assert kbgate("baseline", "show", medication) == 2
    assert kbgate("baseline", "diff", MEDICATION, "--ref", "no-such-ref") == 2


def test_bad_cards_are_refused_or_rejected_as_the_suite_says(
    medication: Path, kbgate: CLI, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where an evaluation goes on, so does check, and says what it will say."""
    with (medication / "cards.jsonl").open("a") as file:
        file.write('{"id": "bad"}\n')
    assert kbgate("evaluate", medication) == 2
    edit_text(medication / "suite.toml", "[kb]", '[kb]\non_bad_card = "reject"')
    capsys.readouterr()
    assert kbgate("check", medication) == 0
    said = capsys.readouterr().out
    assert "76 cards, " in said
    assert "1 card rejected\nrejected: cards.jsonl:77: 'text' is missing\ncritical: 1 of 77 cards rejected, none may be" in said
    assert kbgate("evaluate", medication) == 1
    assert "cards.jsonl:77: 'text' is missing" in last_verdict(home)["reasons"][0]["sentence"]


@pytest.mark.slow
def test_the_installed_command_carries_its_exit_codes(medication: Path, home: Path) -> None:
    command = Path(sys.executable).parent / "kbgate"
    environment = {**os.environ, "KBGATE_HOME": str(home)}
    unwritable = {**environment, "KBGATE_HOME": "/proc/nowhere"}
    runs = [
        subprocess.run([command, "evaluate", medication], capture_output=True, env=environment),
        subprocess.run([command, "evaluate", "/nowhere"], capture_output=True, env=environment),
        subprocess.run([command, "evaluate", medication], capture_output=True, env=unwritable),
    ]
    assert [run.returncode for run in runs] == [0, 2, 4]
    assert not any(b"Traceback" in run.stderr for run in runs)


def test_a_beir_folder_is_a_suite(tmp_path: Path, kbgate: CLI, home: Path) -> None:
    folder = tmp_path / "tiny-beir"
    folder.mkdir()
    (folder / "corpus.jsonl").write_text(
        '{"_id": "1", "title": "Cats", "text": "Cats sleep a lot."}\n{"_id": "2", "title": "Dogs", "text": "Dogs bark."}\n'
    )
    (folder / "queries.jsonl").write_text('{"_id": "a", "text": "who barks?"}\n')
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\na\t2\t1\n")
    assert kbgate("evaluate", folder) == 3
    assert kbgate("baseline", "update", folder, "--reason", "first") == 0
    assert kbgate("evaluate", folder) == 0
    assert last_verdict(home, "tiny-beir")["method"] == "hybrid"


@pytest.mark.slow
def test_two_runs_at_once_never_see_each_other(medication: Path, home: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(medication, tmp_path / "other"))
    edit_lines(other / "cards.jsonl", lambda card: {**card, "text": card["text"][:100]})
    command = Path(sys.executable).parent / "kbgate"
    environment = {**os.environ, "KBGATE_HOME": str(home)}
    runs = [subprocess.Popen([command, "evaluate", folder], env=environment, stderr=subprocess.DEVNULL, cwd=ROOT)
            for folder in (medication, other, medication, other)]  # fmt: skip
    assert [run.wait(timeout=120) for run in runs] == [0, 1, 0, 1]
