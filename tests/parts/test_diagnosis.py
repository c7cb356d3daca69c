"""A cause a diagnosis can name, and a fault a drill can make, is one function each."""

from __future__ import annotations

import dataclasses
from random import Random

import pytest

from kbgate.tasks.diagnosis.causes import CAUSES, Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.studies.faults import Copy, Spoiled, fault
from tests.parts.school import FOREIGN, School


def bring_taxes(after: str) -> None:
    @cause("taxes", after=after, changed=("card",), verb="taken for a tax form by")
    def taxes(missing: Missing, lab: Laboratory) -> Confirmed | None:
        """The card is about taxes now."""
        old = lab.as_it_was(missing.gold)
        if old is None or lab.cards[missing.gold].title != FOREIGN[0]:
            return None
        change = lab.replaced(old)
        rank = lab.ask(missing.case, change).rank(missing.gold)
        proven = lab.brings_back(missing.case, missing.gold, change)
        return Confirmed(f"'{missing.gold}' is a tax form; as it was it stands at {rank}", (missing.gold,), proven)


def test_a_cause(school: School, capsys: pytest.CaptureFixture[str]) -> None:
    bring_taxes("removed")
    school.walk()
    (finding,) = school.verdict["diagnosis"]["findings"]
    assert (finding["cause"], finding["proven"], finding["culprits"]) == ("taxes", True, ["violin"])
    assert school.verdict["diagnosis"]["groups"][0]["sentence"] == "1 taken for a tax form by violin"
    assert "is a tax form; as it was it stands at 1" in school.report.replace("\\", "")
    assert "taxes (proven): 'violin' is a tax form" in capsys.readouterr().out
    assert school.kbgate("causes") == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert names.index("removed") < names.index("taxes")
    assert len(names) == len(CAUSES)


def test_a_cause_after_one_that_nobody_declared(school: School, capsys: pytest.CaptureFixture[str]) -> None:
    school.accept()
    bring_taxes("remove")
    assert school.kbgate("causes") == 2
    assert "comes after the unknown cause 'remove'; did you mean 'removed'?" in capsys.readouterr().err
    school.change("worse", violin=FOREIGN)
    assert school.run("evaluate") == 1
    assert "unknown cause 'remove'" in school.verdict["diagnosis"]["trouble"]


def test_a_fault(school: School, capsys: pytest.CaptureFixture[str]) -> None:
    @fault("a tax form", causes=("card_changed",))
    def a_tax_form(copy: Copy, draw: Random) -> Spoiled | None:
        """A card that someone's question needs says something else."""
        card = copy.card(copy.golds[0])
        copy.edit(card, dataclasses.replace(card, title=FOREIGN[0], text=FOREIGN[1]))
        return Spoiled(card.id, (card.id,))

    school.walk()
    capsys.readouterr()
    school.cards["violin"] = ("Tuning a violin", "Turn the pegs gently.")
    school.write()
    assert school.run("drill", "--sample", "1") == 0
    printed = capsys.readouterr().out
    row = next(line for line in printed.splitlines() if line.startswith("a tax form"))
    assert row.split()[3:] == ["1", "0", "1/1", "(100", "%)", "1/1", "(100", "%)", "card_changed", "1"]
    assert "cards whose loss nobody would notice: 5 of 13" in printed
