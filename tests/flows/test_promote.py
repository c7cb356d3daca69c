"""A promotion that accepts its scores: what it may accept on the way, and what it leaves to a person."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kbgate.tasks.production import resolve
from tests.parts.school import School

COPY = ("How is tuning a violin done", "Tuning a violin: how tuning a violin is done.")


def committed(school: School) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in school.folder.glob("baseline*")}


@pytest.mark.parametrize(("copies", "code"), [(3, 0), (4, 1)])
def test_slips_are_promoted_and_not_accepted_on_the_way(
    copies: int, code: int, tmp_path: Path, kbgate: Callable[..., int], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three cards push the answer from the first place to the fourth, one below the cut; a fourth one pushes it out."""
    school = School(tmp_path, f"slips-{copies}", kbgate, home)
    school.gates |= {"newly_failing": "{ceiling = 0, slack = 1}", "contract": "{tolerance = 0.2}"}
    school.accept()
    before = committed(school)
    school.change("copies", **{f"copy-{n}": COPY for n in range(copies)})
    capsys.readouterr()
    assert school.run("promote", "--update-baseline", "--reason", "nightly") == code, school.verdict["reasons"]
    assert committed(school) == before
    said = capsys.readouterr().err
    if code:
        assert school.verdict["newly_failing"] == ["violin"]
        return
    assert school.verdict["slipped"] == ["violin"]
    target, _ = resolve(school.root / "serving")
    assert target.build == school.verdict["build"]
    said = " ".join(said.split())
    assert f"{target.build} is served; the baseline stays as it is: 1 case slipped (violin); look at them" in said
    assert f'kbgate baseline update {school.folder} --reason "..."' in said
    assert school.kbgate("baseline", "update", school.folder, "--reason", "looked at") == 0
    assert committed(school) != before
    assert "case violin: slipped, and counts as slipped until it passes" in diff(school, capsys)


def diff(school: School, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert school.kbgate("baseline", "diff", school.folder) == 0
    return capsys.readouterr().out
