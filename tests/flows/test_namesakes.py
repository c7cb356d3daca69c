"""Two suites of one name share nothing: what one serves, another does not replace, roll back or read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.identity import identity_of, run_folder
from kbgate.tasks.inputs.suite import load_suite
from tests.conftest import edit_text, last_verdict, runs_in, write_lines

CLI = Callable[..., int]
SUITE = 'name = "faq"\ntop_k = 1\nk_values = [1]\n[chunking]\nmethod = "recursive"\n[retrieval]\nmethod = "bm25"\n'


def team(folder: Path, word: str, more: str = "") -> Path:
    """A suite called faq whose cards speak of this word."""
    folder.mkdir(parents=True)
    (folder / "suite.toml").write_text(SUITE + more)
    write_lines(folder / "cards.jsonl", [{"id": f"c{n}", "text": f"{word} number{n}"} for n in range(3)])
    write_lines(folder / "golden.jsonl", [{"id": f"q{n}", "query": f"number{n}", "expected": [f"c{n}"]} for n in range(3)])
    return folder


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KBGATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def served(kbgate: CLI, capsys: pytest.CaptureFixture[str], suite: Path) -> str:
    capsys.readouterr()
    assert kbgate("status", suite) == 0
    return capsys.readouterr().out.split("\n")[0].removeprefix("served: ")


def accept(kbgate: CLI, *suites: Path) -> None:
    for suite in suites:
        assert kbgate("baseline", "update", suite, "--reason", "first") == 0


@pytest.mark.slow
def test_each_serves_its_own(tmp_path: Path, kept: Path, kbgate: CLI, capsys: Any) -> None:
    one, other = team(tmp_path / "a" / "faq", "holidays"), team(tmp_path / "b" / "faq", "parking")
    accept(kbgate, one, other)
    assert kbgate("promote", one) == 0
    was = served(kbgate, capsys, one)
    assert kbgate("status", other) == 0
    assert "other suites of this name serve from" in capsys.readouterr().out
    assert kbgate("promote", other) == 0
    assert f"serve from {kept / 'production' / identity_of(load_suite(one)).key};" in capsys.readouterr().err
    assert served(kbgate, capsys, one) == was
    assert served(kbgate, capsys, other) not in ("", was)
    capsys.readouterr()
    assert kbgate("promote", other) == 0
    assert "other suites of this name" not in capsys.readouterr().err, "it has a place of its own by now"
    before = served(kbgate, capsys, other)
    assert kbgate("rollback", other) == 0
    assert served(kbgate, capsys, other) not in ("", was, before)
    assert kbgate("rollback", one) == 1, "there is nothing of its own to return to"
    assert served(kbgate, capsys, one) == was
    assert len({folder.parent for folder in runs_in(kept, "faq")}) == 4, "before and after the first acceptance, of each"
    assert len(list(kept.glob("history/faq-*.jsonl"))) == 4


@pytest.mark.slow
def test_a_copy_is_not_the_suite_it_was_copied_from(tmp_path: Path, kept: Path, kbgate: CLI, capsys: Any) -> None:
    one = team(tmp_path / "a" / "faq", "holidays")
    accept(kbgate, one)
    copy = Path(shutil.copytree(one, tmp_path / "b" / "faq"))
    assert kbgate("promote", one) == 0
    was = served(kbgate, capsys, one)
    assert kbgate("promote", copy) == 0
    assert served(kbgate, capsys, one) == was != served(kbgate, capsys, copy)


@pytest.mark.slow
def test_at_one_place_another_suite_is_refused_until_it_takes_over(
    tmp_path: Path, kept: Path, kbgate: CLI, capsys: Any
) -> None:
    place = f'[production]\npath = "{tmp_path / "serving"}"\n'
    one, other = team(tmp_path / "a" / "faq", "holidays", place), team(tmp_path / "b" / "faq", "parking", place)
    accept(kbgate, one, other)
    assert kbgate("promote", one) == 0
    was = served(kbgate, capsys, one)
    for command in ("promote", "status", "rollback"):
        assert kbgate(command, other) == 1
        assert "kbgate promote --take-over" in capsys.readouterr().err
    assert served(kbgate, capsys, one) == was
    assert kbgate("promote", other, "--take-over") == 0
    assert served(kbgate, capsys, other).startswith(identity_of(load_suite(other)).key)
    assert kbgate("rollback", other) == 1, "what the other suite served is nothing to return to"
    assert kbgate("status", one) == 1
    assert (tmp_path / "serving" / "versions" / was).is_dir(), "what was taken over is not removed"


@pytest.mark.slow
def test_a_take_over_that_does_not_pass_leaves_what_is_served(tmp_path: Path, kept: Path, kbgate: CLI, capsys: Any) -> None:
    place = f'[production]\npath = "{tmp_path / "serving"}"\n'
    one, other = team(tmp_path / "a" / "faq", "holidays", place), team(tmp_path / "b" / "faq", "parking", place)
    accept(kbgate, one, other)
    assert kbgate("promote", one) == 0
    was = served(kbgate, capsys, one)
    edit_text(other / "cards.jsonl", "parking number1", "nothing")
    assert kbgate("promote", other, "--take-over") == 1
    assert served(kbgate, capsys, one) == was


@pytest.mark.slow
def test_what_an_older_kbgate_serves_is_taken_over_once(tmp_path: Path, kept: Path, kbgate: CLI, capsys: Any) -> None:
    """Its place and its builds bear the bare name, which does not say whose they are; readers know that place."""
    one = team(tmp_path / "a" / "faq", "holidays")
    accept(kbgate, one)
    assert kbgate("promote", one) == 0
    key, was = identity_of(load_suite(one)).key, served(kbgate, capsys, one)
    older = (kept / "production" / key).rename(kept / "production" / "faq")
    (older / "versions" / was).rename(older / "versions" / was.replace(key, "faq"))
    (older / "CURRENT").write_text((older / "CURRENT").read_text().replace(key, "faq"))
    assert kbgate("promote", one) == 1
    assert "kbgate promote --take-over" in capsys.readouterr().err
    assert kbgate("promote", one, "--take-over") == 0
    assert json.loads((older / "CURRENT").read_text())["target"]["build"].startswith(key)
    assert kbgate("promote", one) == 0
    assert served(kbgate, capsys, one).startswith(key)
    assert not (kept / "production" / key).exists()
    other = team(tmp_path / "b" / "faq", "parking")
    accept(kbgate, other)
    assert kbgate("promote", other) == 0, "the older place is somebody's now, and this suite has one of its own"


@pytest.mark.slow
def test_a_suite_that_moved_is_told_where_its_readers_look(tmp_path: Path, kept: Path, kbgate: CLI, capsys: Any) -> None:
    one = team(tmp_path / "a" / "faq", "holidays")
    accept(kbgate, one)
    assert kbgate("promote", one) == 0
    there = kept / "production" / identity_of(load_suite(one)).key
    was = json.loads((there / "CURRENT").read_text())["target"]["build"]
    (tmp_path / "c").mkdir()
    moved = one.rename(tmp_path / "c" / "faq")
    assert kbgate("status", moved) == 0
    assert f"serve from {there};" in capsys.readouterr().out
    (moved / "suite.toml").write_text(SUITE + f'[production]\npath = "{there}"\n')
    assert kbgate("promote", moved) == 1
    assert kbgate("promote", moved, "--take-over") == 0
    assert json.loads((there / "CURRENT").read_text())["target"]["build"] not in ("", was)


def test_what_was_seen_before_the_first_acceptance_is_known_after(tmp_path: Path, kept: Path, kbgate: CLI, capsys: Any) -> None:
    """The first baseline gives a suite another key: its history goes on, its runs are found, its cards can be put back."""
    from kbgate.tasks.runs.history import read_history

    one = team(tmp_path / "faq", "holidays")
    assert kbgate("evaluate", one) == 3
    accept(kbgate, one)
    edit_text(one / "cards.jsonl", "holidays number1", "nothing")
    assert kbgate("evaluate", one) == 1
    identity = identity_of(load_suite(one))
    lines = read_history(kept, identity.keys)
    assert [line.exit_code for line in lines] == [3, 3, 1]
    assert all((run_folder(kept, load_suite(one), line.run) / "verdict.json").is_file() for line in lines)
    (finding,) = last_verdict(kept, "faq")["diagnosis"]["findings"]
    assert (finding["cause"], finding["proven"]) == ("text_lost", True), "its old text was put back, and asked"


def test_a_night_tells_them_apart_by_folder(tmp_path: Path, kept: Path) -> None:
    from kbgate.flows import nightly

    suites = [str(team(tmp_path / name / "faq", "holidays")) for name in ("a", "b")]
    night = nightly.run(suites)
    assert [row.suite for row in night.rows] == suites
    assert len({folder.parent for folder in runs_in(kept, "faq")}) == 2
