"""Hostile texts in every place a command tells of: cards, questions, ids, file names, arguments, errors."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, write_lines

CLI = Callable[..., int]
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
TRICK = "\x9b31m\u202etrick\u2066\x85::error::pwned\u2028::warning::x ##vso[task.complete] "


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KBGATE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "hostile"
    folder.mkdir()
    cards = [
        {"id": f"::error::c{n}", "title": f"::error::{TRICK}\n::error::title {n}", "text": f"text{n} word{n}\n::error::{TRICK}"}
        for n in range(4)
    ]
    write_lines(folder / "cards.jsonl", cards)
    cases = [{"id": f"::error::q{n}", "query": f"word{n}\n::error::{TRICK}", "expected": [f"::error::c{n}"]} for n in range(4)]
    write_lines(folder / "golden.jsonl", cases)
    settings = 'top_k = 1\nk_values = [1]\n[retrieval]\nmethod = "bm25"\n'
    (folder / "suite.toml").write_text(f'name = "hostile"\n{settings}')
    return folder


def harmless(capsys: pytest.CaptureFixture[str]) -> str:
    said = "".join(capsys.readouterr())
    assert said.strip()
    assert not FORBIDDEN.search(said), FORBIDDEN.search(said)
    assert not re.search(r"^\s*::", said, re.MULTILINE), said
    assert "##vso[" not in said
    return said


def test_no_command_tells_what_a_runner_or_a_terminal_would_obey(
    suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert kbgate("check", suite) == 0
    harmless(capsys)
    assert kbgate("baseline", "update", suite, "--reason", f"::error::{TRICK}") == 0
    harmless(capsys)
    rows = [{"id": f"::error::c{n}", "title": TRICK, "text": "gone"} for n in range(4)]
    write_lines(suite / "cards.jsonl", rows)
    assert kbgate("evaluate", suite, "--json") == 1
    harmless(capsys)
    assert kbgate("explain", suite, "::error::q1") == 0
    assert "missing: ::error::c1" in harmless(capsys)
    assert kbgate("nightly", suite) == 1
    harmless(capsys)
    assert kbgate("baseline", "show", suite) == 0
    harmless(capsys)
    report = next((tmp_path / "home").rglob("report.md")).read_text(encoding="utf-8")
    assert not FORBIDDEN.search(report)
    assert not re.search(r"^\s*::|##vso\[", report, re.MULTILINE)


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "{suite}", f"::error::{TRICK}"),
        ("check", f"::error::{TRICK}"),
        ("evaluate", "{suite}", f"--floor=::error::{TRICK}"),
        ("evaluate", "{suite}", f"--{TRICK}"),
        (f"\n::error::{TRICK}",),
        ("--debug", "check", f"\n::error::{TRICK}"),
    ],
)
def test_no_error_does(arguments: tuple[str, ...], suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbgate(*(one.replace("{suite}", str(suite)) for one in arguments)) != 0
    harmless(capsys)


def test_file_names_do_not(suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    folder = suite / "kb"
    folder.mkdir()
    (folder / "a\n::error::x\u202e.md").write_bytes(b"\xff")
    (folder / "::error::\x1b[31m\n::error::b.mdx").write_text("x")
    (suite / "suite.toml").write_text('name = "hostile"\n[kb]\npath = "kb"\n[retrieval]\nmethod = "bm25"\n')
    assert kbgate("check", suite) == 2
    harmless(capsys)


def test_everything_that_flows_print_goes_through_the_door() -> None:
    bare = [
        f"{path.name}:{node.lineno}"
        for path in sorted((ROOT / "flows").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "Text", "typer.echo", "sys.stdout.write")
    ]
    assert {place.split(":")[0] for place in bare} <= {"terminal.py", "__main__.py"}, bare
