"""A section of the report is one file in the folder of its templates."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kbgate.reports import render
from tests.parts.school import School


@pytest.fixture
def sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the report's templates, in place of them."""
    folder = Path(shutil.copytree(render._TEMPLATES, tmp_path / "templates"))
    monkeypatch.setattr(render, "_TEMPLATES", folder)
    return folder / "report.md"


def test_a_section(school: School, sections: Path) -> None:
    (sections / "12_owner.md.j2").write_text("## Owner\n\n{{ document.suite | safe_text }}, {{ view.headline }}\n")
    (sections / "13_silent.md.j2").write_text("{% if document.mode == 'none' %}never{% endif %}\n")
    (sections / "notes.txt").write_text("no section")
    school.walk()
    heads = [line for line in school.report.splitlines() if line.startswith("#")]
    assert heads[1] == "## Owner"
    assert f"{school.name.replace('-', chr(92) + '-')}, BLOCK" in school.report or f"{school.name}, BLOCK" in school.report
    assert "no section" not in school.report
    (sections / "12_owner.md.j2").unlink()
    assert school.run("evaluate") == 1
    assert "## Owner" not in school.report


def test_a_misspelt_variable_in_it_is_told(school: School, sections: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (sections / "12_owner.md.j2").write_text("{{ view.headlin }}")
    school.write()
    assert school.run("evaluate") == 4
    assert "headlin" in capsys.readouterr().err
