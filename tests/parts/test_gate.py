"""A check of the gate is one function; whether an exception may excuse a case from it, it says of itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.errors import named
from kbgate.tasks.gate import check
from kbgate.tasks.gate.allowances import unexcused
from tests.parts.school import School

ALLOW = '[[allow]]\ncase = "bread"\ncheck = "loaves"\nreason = "meant"\nuntil = 2099-01-01\n'


def bring_loaves(level: Level, excusable: bool) -> None:
    @check("loaves", level=level, excusable=excusable, place=0)
    def loaves(exam: Exam) -> Iterator[Reason]:
        """No question is about bread."""
        cases = unexcused(exam, "loaves", [name for name, case in exam.asked.items() if "bread" in case.query])
        if cases:
            yield Reason("loaves", level, f"asked about bread: {named(cases)}", tuple(cases))


def test_a_check(school: School, capsys: pytest.CaptureFixture[str]) -> None:
    bring_loaves(Level.SUPPORTING, excusable=True)
    school.walk()
    capsys.readouterr()
    assert school.kbgate("checks") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("loaves")]
    assert line.strip().split(maxsplit=3) == ["loaves", "supporting", "yes", "No question is about bread."]
    assert "asked about bread: bread" in school.report


def test_what_it_blocks_stands_first_and_may_be_excused(school: School) -> None:
    school.accept()
    bring_loaves(Level.CRITICAL, excusable=True)
    assert school.run("evaluate") == 1
    assert school.verdict["reasons"][0]["sentence"] == "asked about bread: bread"
    school.tables = ALLOW
    school.write()
    assert school.run("evaluate") == 0
    assert {reason["level"] for reason in school.verdict["reasons"]} == {"advisory"}


def test_one_that_excuses_nothing_stands_in_no_exception(school: School, capsys: pytest.CaptureFixture[str]) -> None:
    bring_loaves(Level.CRITICAL, excusable=False)
    school.tables = ALLOW
    school.write()
    assert school.run("evaluate") == 2
    known = "acceptance, canaries, gold_text, newly_failing, unbaselined_failing, unmet_rules, unseen_gold, vanished_gold"
    assert f"allow.0.check: unknown 'loaves'; known: {known}" in capsys.readouterr().err
