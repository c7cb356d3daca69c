"""`kbgate explain | inspect | drill` as tables: what a row holds, wherever its columns stand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kbgate.flows.cli_diagnosis import _print_drill, _print_explanation
from kbgate.tasks.diagnosis.explanation import Above, Explanation, Lost, TopCard
from kbgate.tasks.findings import Finding
from kbgate.tasks.studies.drill import Drill, Mutant
from tests.conftest import MEDICATION, cells_of, last_verdict, read_lines, run_named

CLI = Callable[..., int]


def test_an_explanation_tells_the_top_and_each_missing_gold_with_its_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    evidence = {"rank now": None, "rank at the baseline": 1, "score": 0.25}
    displaced = Finding("q1", "c1", "displaced", "displaced by [c9]", True, ("c9",), evidence, (("c9", "Nine"),))
    supposed = Finding("q1", "c4", "text_lost", "'c4' lost text", False)
    unknown = Finding("q1", "c2", "unknown", "no single change brings 'c2' back", False)
    golds = (
        "found: c3",
        Lost(displaced, "One", (Above("c9", "[bold]Nine[/bold]", "new"), Above("c8", "Eight", "changed"))),
        Lost(supposed, "Four", ()),
        Lost(unknown, "not in the knowledge base", ()),
    )
    top = (TopCard(1, "c9", "[bold]Nine[/bold]", ("new",)), TopCard(2, "c3", "Three", ("gold", "changed")))
    _print_explanation(Explanation("q1", "What [is] it?", "golden, en", "those of the last run", 2, top, golds))
    lines = cells_of(capsys.readouterr().out)
    assert lines[:3] == [["q1: What [is] it?"], ["golden, en; ranks are those of the last run"], ["top 2:"]]
    assert ["1", "c9", "new", "[bold]Nine[/bold]"] in lines
    assert ["2", "c3", "gold, changed", "Three"] in lines
    assert ["found: c3"] in lines
    told = lines.index(["missing: c1: One"])
    assert lines[told + 1] == ["displaced (proven): displaced by [c9]"]
    assert lines[told + 3 : told + 6] == [["rank now", "not found"], ["rank at the baseline", "1"], ["score", "0.25"]]
    assert lines[told + 7 : told + 9] == [["new", "c9", "[bold]Nine[/bold]"], ["changed", "c8", "Eight"]]
    assert ["text_lost (not proven): 'c4' lost text"] in lines
    assert lines[lines.index(["missing: c2: not in the knowledge base"]) + 1] == ["unknown: no single change brings 'c2' back"]


def test_explain_shows_the_ranks_of_the_last_run(
    medication: Path, kbgate: CLI, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kbgate("evaluate", medication) == 0
    run = run_named(home, last_verdict(home)["run"]) / "run.trec"
    ranked = [line.split() for line in run.read_text().splitlines() if line.startswith("lamictal-week ")]
    titles = {card["id"]: card["title"] for card in read_lines(MEDICATION / "cards.jsonl")}
    capsys.readouterr()
    assert kbgate("explain", medication, "lamictal-week") == 0
    lines = cells_of(capsys.readouterr().out)
    first = lines.index(["top 5:"]) + 2
    shown = [(rank, card, title) for rank, card, *_, title in lines[first : first + 5]]
    assert shown == [(rank, card, titles[card]) for _, _, card, rank, *_ in ranked[:5]]


def test_inspect_has_a_row_for_each_thing_it_looked_for(kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbgate("inspect", MEDICATION, "--json") == 0
    observed = json.loads(capsys.readouterr().out)
    assert kbgate("inspect", MEDICATION) == 0
    _, *rows = cells_of(capsys.readouterr().out)
    assert rows == [[one["name"], one["sentence"]] for one in observed]
    assert len(rows) >= 12


def mutant(
    fault: str, cause: str, *, noticed: bool, right: bool, equivalent: bool = False, missed: tuple[str, ...] = ()
) -> Mutant:
    return Mutant(fault, "c1", equivalent, noticed, missed, (), "BLOCK", cause, right, "")


def test_a_drill_has_a_row_for_each_fault_and_one_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    mutants = (
        mutant("expired", "validity", noticed=True, right=True),
        mutant("expired", "unknown", noticed=True, right=False),
        mutant("expired", "", noticed=False, right=False, equivalent=True),
        mutant("expired", "", noticed=False, right=False, missed=("q1",)),
        mutant("dropped", "removed", noticed=True, right=True),
    )
    _print_drill(Drill(mutants, ("table cut",), ("c7",), 9))
    lines = cells_of(capsys.readouterr().out)
    assert lines[1:] == [
        ["dropped", "1", "0", "1/1 (100 %)", "1/1 (100 %)", "removed 1"],
        ["expired", "4", "1", "2/3 (67 %)", "1/2 (50 %)", "validity 1, unknown 1"],
        ["all", "5", "1", "3/4 (75 %)", "2/3 (67 %)"],
        ["mutants that make a passing case fail: 1 unnoticed, 0 only warned of (inside the slack)"],
        ["expired of c1: q1"],
        ["faults this suite cannot have: table cut"],
        ["cards whose loss nobody would notice: 1 of 9"],
        ["c7"],
    ]
