"""What the README says is so: its metric table, its commands, its example."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kbgate.tasks.diagnosis.causes import in_order
from kbgate.tasks.metrics import METRICS, Judged, better
from tests.conftest import ROOT

README = ROOT / "README.md"
BEGIN, END = "| metric | better | what it says |\n|---|---|---|\n", "<!-- end of metrics -->"
CAUSES_BEGIN, CAUSES_END = "| cause | what it says |\n|---|---|\n", "<!-- end of causes -->"


def causes() -> str:
    return "".join(f"| `{part.name}` | {part.summary} |\n" for part in in_order())


def table() -> str:
    rows = (f"| `{part.name}{'@k' if part.at_k else ''}` | {better(part)} | {part.summary} |\n" for part in METRICS.values())
    return "".join(rows)


@pytest.mark.parametrize(("begin", "end", "rows"), [(BEGIN, END, table), (CAUSES_BEGIN, CAUSES_END, causes)])
def test_the_tables_are_the_registrys(begin: str, end: str, rows: Callable[[], str]) -> None:
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    shown, after = rest.split(end)
    if os.environ.get("UPDATE_GOLDEN"):
        README.write_text(before + begin + rows() + end + after, encoding="utf-8")
        shown = rows()
    assert shown == rows(), "UPDATE_GOLDEN=1 rewrites the table"


@pytest.mark.parametrize("command", sorted(set(re.findall(r"^\$ kbgate ([a-z]+(?: [a-z]+)?) ", README.read_text(), re.M))))
def test_every_command_is_there(command: str, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    words = command.split() if command.startswith("baseline") else command.split()[:1]
    assert kbgate(*words, "--help") == 0
    assert f"kbgate {' '.join(words)}" in capsys.readouterr().out


def test_the_example_metric_is_one_function() -> None:
    """As it stands in the README, imports and all."""
    (source,) = (code for code in re.findall(r"```python\n(.*?)```", README.read_text(), re.S) if "@metric" in code)
    assert "first_place" not in METRICS
    exec(compile(source, "README.md", "exec"), {})
    try:
        case = Judged(("a", "b"), (frozenset({"a"}),), {"a": 1.0})
        assert METRICS["first_place"].compute(case, 5) == 1.0
        assert METRICS["first_place"].compute(Judged((), (frozenset({"a"}),), {"a": 1.0}), 5) == 0.0
    finally:
        METRICS.remove("first_place")


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (ROOT / target).exists(), target


def test_make_runs_what_it_says() -> None:
    # Under make itself, a make that is asked says where it stands; what is asked here is the plan alone.
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    planned = subprocess.run(["make", "-n", "eval"], cwd=ROOT, env=alone, capture_output=True, text=True, check=True).stdout
    assert "kbgate evaluate baselines/medication" in planned
    test, everything_else = (
        subprocess.run(
            ["make", "-n", "-o", ".venv/.test", goal], cwd=ROOT, env=alone, capture_output=True, text=True, check=True
        ).stdout
        for goal in ("test", "test-all")
    )
    places = [test.index(word) for word in ("ruff check", "ruff format --check", "/mypy", "/pytest")]
    assert places == sorted(places)
    assert everything_else.split() == [".venv/bin/pytest", "-n", "2", "--dist", "worksteal", "-m", "slow"]
    ci = (ROOT / ".ci" / "run").read_text()
    assert ci.index("make test\n") < ci.index("make test-all\n")


def test_nothing_names_a_machine() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    words = re.compile("|".join(["/wo" + "rk/", "/ro" + "ot/", "py" + r"pi\.org", "python" + "hosted"]))
    for name in filter(None, tracked):
        path = Path(ROOT / name)
        if path.suffix in (".py", ".md", ".toml", ".txt", ".j2", ".jsonl", ".json"):
            assert not words.search(path.read_text(encoding="utf-8")), name
