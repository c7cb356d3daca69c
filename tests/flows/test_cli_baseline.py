"""`kbgate baseline update --accept`: single rows by the command line, and what it does not go together with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import edit_lines, read_lines, write_suite

CLI = Callable[..., int]
TEXTS = {"vpn": "how to reach the network", "leave": "days off in summer", "badge": "doors and badges", "pay": "salary slips"}


@pytest.fixture
def faq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kbgate: CLI) -> Path:
    """A small suite that ranks by words, accepted; then two of its cards lost what was asked of them."""
    monkeypatch.setenv("KBGATE_HOME", str(tmp_path / "home"))
    suite = write_suite(tmp_path / "faq", "bm25", TEXTS)
    # The mean is no subject here: a single row may not lower it by more than twice its tolerance either.
    with (suite / "suite.toml").open("a") as file:
        file.write("[gates]\ncontract = {tolerance = 0.5}\nnewly_failing = {ceiling = 0}\n")
    assert kbgate("baseline", "update", suite, "--reason", "first") == 0
    edit_lines(
        suite / "cards.jsonl", lambda row: {**row, "text": "gone", "title": ""} if row["id"] in ("pay", "badge") else row
    )
    assert kbgate("evaluate", suite) == 1
    return suite


def test_one_case_is_accepted_and_the_other_goes_on_blocking(faq: Path, kbgate: CLI) -> None:
    before = {row["id"]: row for row in read_lines(faq / "baseline.cases.jsonl")}
    assert kbgate("baseline", "update", faq, "--accept", "pay", "--reason", "pay moved to another base") == 0
    after = {row["id"]: row for row in read_lines(faq / "baseline.cases.jsonl")}
    assert [name for name in before if before[name] != after[name]] == ["pay"]
    assert after["pay"]["accepted"]["reason"] == "pay moved to another base"
    assert kbgate("evaluate", faq) == 1
    assert kbgate("baseline", "update", faq, "--accept", "badge", "--accept", "pay", "--reason", "so did badges") == 0
    assert kbgate("evaluate", faq) == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--accept", "pay"], "--reason: is missing"),
        (["--accept", "", "--reason", "x"], "is no case of the baseline"),
        (["--accept", "pya", "--reason", "x"], "did you mean 'pay'?"),
        (["--accept", "pay", "--anchor", "--reason", "x"], "--accept: accepts single rows"),
        (["--accept", "pay", "--accept-regression", "--reason", "x"], "--accept: accepts single rows"),
        (["--accept", "pay", "--finish"], "--finish: stands alone"),
    ],
)
def test_what_single_rows_do_not_go_with_writes_nothing(
    options: list[str], told: str, faq: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file.name: file.read_bytes() for file in faq.iterdir()}
    capsys.readouterr()
    assert kbgate("baseline", "update", faq, *options) == 2
    assert told in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in faq.iterdir()} == before


def test_the_file_still_says_whole_runs_apart(faq: Path, kbgate: CLI) -> None:
    """The next full update clears the marks of single rows."""
    assert kbgate("baseline", "update", faq, "--accept", "pay", "--accept", "badge", "--reason", "moved") == 0
    assert json.loads((faq / "baseline.json").read_text())["accepted"]["reason"] == "first"
    assert kbgate("baseline", "update", faq, "--reason", "all of it") == 0
    assert not any(row.get("accepted") for row in read_lines(faq / "baseline.cases.jsonl"))
