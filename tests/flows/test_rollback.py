"""Rollback as the command does it: what is unknown sits the exam before it is served."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kbgate.tasks.production.folder import FolderProduction
from tests.conftest import edit_lines, edit_text
from tests.tasks.production.builds import opened

pytestmark = pytest.mark.slow
CLI = Callable[..., int]


def served(pointer: Path) -> str:
    build: str = json.loads(pointer.read_text())["target"]["build"]
    return build


def test_a_build_of_unknown_state_is_examined_before_it_is_served(
    medication: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_text(medication / "suite.toml", "[kb]", '[production]\npath = "serving"\n\n[kb]')
    production, pointer = FolderProduction(medication / "serving", "medication"), medication / "serving" / "CURRENT"
    assert kbgate("promote", medication) == 0
    first = served(pointer)
    pointer.unlink()
    assert kbgate("promote", medication) == 0
    second = served(pointer)
    capsys.readouterr()
    assert kbgate("status", medication) == 0
    assert f"kept: {first}, of unknown state: rollback examines it" in capsys.readouterr().out

    golden = (medication / "golden.jsonl").read_text()
    edit_lines(medication / "golden.jsonl", lambda case: {**case, "query": "an entirely different question"})
    assert kbgate("rollback", medication) == 1
    assert "does not pass" in capsys.readouterr().err
    (medication / "golden.jsonl").write_text(golden)

    assert kbgate("rollback", medication) == 0
    content = json.loads(pointer.read_text())
    assert content["target"]["build"] == first
    assert content["target"]["verdict"]["verdict"] in {"PASS", "WARN"}
    assert content["target"]["contents"]["rows"] > 0

    old = {key: value for key, value in content.items() if key not in {"move", "number"}}
    for target in (old["target"], *old["previous"]):
        del target["contents"]
    pointer.write_text(json.dumps({**old, "schema": 1}))  # as an older kbgate left it
    with opened(production, second) as collection:
        row = collection.get(limit=1)
        collection.delete(ids=row["ids"])
    assert kbgate("rollback", medication) == 1
    assert f"{second} is not whole" in capsys.readouterr().err
    assert served(pointer) == first
    edit_text(pointer, second, first)
    assert kbgate("rollback", medication, "--to", first) == 0, "it was let in by an exam, and holds what its name says"
