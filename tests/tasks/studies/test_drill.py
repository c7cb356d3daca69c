"""The drill: faults are made on copies, examined by a process that is told nothing of them, and counted honestly."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.domain import Card, Case, Inputs
from kbgate.tasks.findings import Finding
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.golden import load_golden
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.studies.copies import copy_of, write
from kbgate.tasks.studies.drill import LOOKED_INTO, Drill, Mutant, _in_worker, _judged, _named, rows_of, summary_lines
from kbgate.tasks.studies.faults import FAULTS, Copy, Spoiled
from kbgate.tasks.studies.trial import Trial, trial_of
from tests.conftest import MEDICATION, edit_lines, edit_text, write_lines

CLI = Callable[..., int]


def a_copy() -> Copy:
    table = "Fares in crowns, children half.\n\n| from | to |\n|---|---|\n| a | b |\n| c | d |\n\nPay on board. Bring change."
    cards = [
        Card(
            f"c{n}",
            f"Título {n}",
            f"Línea {n} está aquí. Otra frase. Una más. {table}",
            domain=f"d{n % 3}",
            topics=("t",),
            description="palabras",
        )
        for n in range(8)
    ]
    cases = [Case(f"q{n}", "?", groups=((f"c{n}",),)) for n in range(8)]
    return Copy({"name": "x", "kb": {"path": "cards.jsonl"}}, cards, cases, "2026-06-01", {"cls": "/m"}, ("c1", "c2"))


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_every_fault_changes_the_copy_and_says_whom(name: str) -> None:
    before = a_copy()
    for seed in range(30):
        copy = a_copy()
        spoiled = FAULTS[name].spoil(copy, random.Random(seed))
        if spoiled is not None:
            assert copy != before
            assert spoiled.target
            assert FAULTS[name].causes
            return
    pytest.fail("it never applied")


def test_faults_are_drawn_alike_from_one_seed() -> None:
    for name, fault in FAULTS.items():
        one, other = a_copy(), a_copy()
        assert fault.spoil(one, random.Random(4)) == fault.spoil(other, random.Random(4)), name
        assert one == other


def trial(verdict: str, causes: list[str], culprit: str = "c1", **fields: Any) -> Trial:
    findings = tuple(Finding(f"q{n}", "c1", cause, "", True, (culprit,)) for n, cause in enumerate(causes))
    return Trial(verdict, (("newly_failing", "a sentence"),) if verdict != "PASS" else (), findings=findings, **fields)


FIRST = Trial("PASS", passing=frozenset({"q0"}), held=frozenset({("q0", "c1")}))


def test_a_fault_is_named_by_the_cause_given_most_often_and_its_object() -> None:
    fault, spoiled = FAULTS["expired"], Spoiled("c1", ("c1",))
    assert _named(fault, spoiled, trial("BLOCK", ["validity", "validity", "displaced"]), []) == ("validity", True)
    assert _named(fault, spoiled, trial("BLOCK", ["validity", "displaced", "displaced"]), []) == ("displaced", False)
    assert _named(fault, spoiled, trial("BLOCK", ["validity"], culprit="c2"), []) == ("validity", False)
    assert _named(fault, spoiled, trial("BLOCK", ["unknown", "unknown", "validity"]), []) == ("validity", True)
    assert _named(fault, spoiled, trial("BLOCK", []), []) == ("", False)


def test_a_passing_case_that_fails_unnoticed_is_counted_against_the_gate() -> None:
    fault, spoiled = FAULTS["expired"], Spoiled("c1", ("c1",))
    missed = _judged(fault, spoiled, FIRST, trial("PASS", []))
    assert (missed.missed, missed.noticed, missed.equivalent) == (("q0",), False, False)
    seen = _judged(fault, spoiled, FIRST, trial("BLOCK", ["validity"]))
    assert (seen.missed, seen.noticed, seen.right) == ((), True, True)
    same = _judged(fault, spoiled, FIRST, trial("PASS", [], passing=FIRST.passing, held=FIRST.held))
    assert same.equivalent


def test_what_was_red_before_notices_nothing_by_being_red() -> None:
    red = Trial("BLOCK", (("canaries", "a sentence"),), FIRST.passing, FIRST.held)
    again = Trial("BLOCK", (("canaries", "a sentence"),), FIRST.passing, frozenset())
    assert not _judged(FAULTS["expired"], Spoiled("c1"), red, again).noticed


def test_the_process_that_examines_is_told_a_folder_and_nothing_else(medication: Path, home: Path) -> None:
    edit_lines(medication / "cards.jsonl", lambda row: None if row["id"] == "epilepsy-missed" else row)
    result = _in_worker((str(medication), str(home)))
    assert result.verdict == "BLOCK"
    assert {finding.cause for finding in result.findings} == {"removed"}
    assert len(result.findings) <= LOOKED_INTO


def test_a_copy_that_is_spoiled_leaves_the_original_as_it_was() -> None:
    for fault in FAULTS.values():
        original, before = a_copy(), a_copy()
        fault.spoil(original.copy(), random.Random(5))
        assert original == before, fault.name


def test_cards_and_cases_are_written_as_they_were_read(medication: Path, tmp_path: Path) -> None:
    """All that decides what is found stands in the copy: hashes differ only where a line says where it is from."""
    suite = load_suite(medication)
    inputs = Inputs(suite, load_cards(suite), load_golden(suite), None)
    write(copy_of(inputs, "2026-06-01", None, random.Random(1)), tmp_path / "copy")
    copied = load_suite(tmp_path / "copy")
    assert {name: case.hash for name, case in load_golden(copied).cases.items()} == {
        name: case.hash for name, case in inputs.golden.cases.items()
    }
    unplaced = [
        {name: dataclasses.replace(card, file="", line=0, hash="", source_url="", updated_at="") for name, card in kb.items()}
        for kb in (load_cards(copied).cards, inputs.kb.cards)
    ]
    assert unplaced[0] == unplaced[1]


def mutant(fault: str, cause: str, **fields: Any) -> Mutant:
    given = {"equivalent": False, "noticed": True, "missed": (), "warned": (), "verdict": "BLOCK", "right": True, "detail": ""}
    return Mutant(fault=fault, target="c1", cause=cause, **{**given, **fields})


def test_the_mutants_of_a_fault_are_counted() -> None:
    mutants = (
        mutant("expired", "validity"),
        mutant("expired", "unknown", right=False),
        mutant("expired", "", equivalent=True, noticed=False, right=False),
        mutant("expired", "", noticed=False, right=False, missed=("q1",)),
        mutant("dropped", "", right=False, verdict="WARN", warned=("q2",)),
    )
    drill = Drill(mutants, ("table cut",), ("c7",), 9)
    dropped, expired, everything = rows_of(drill)
    assert (dropped.fault, dropped.made, dropped.causes) == ("dropped", 1, (("nothing", 1),))
    assert (expired.made, expired.equivalent, expired.real, expired.noticed, expired.right) == (4, 1, 3, 2, 1)
    assert expired.causes == (("validity", 1), ("unknown", 1))
    assert (everything.fault, everything.made, everything.noticed) == ("all", 5, 3)
    assert list(summary_lines(drill)) == [
        "mutants that make a passing case fail: 1 unnoticed, 1 only warned of (inside the slack)",
        "  expired of c1: q1",
        "faults this suite cannot have: table cut",
        "cards whose loss nobody would notice: 1 of 9",
        "  c7",
    ]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Ten cards found by their words alone: a drill in seconds."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "suite.toml").write_text('name = "small"\ntop_k = 1\nas_of = 2026-06-01\n[retrieval]\nmethod = "bm25"\n')
    words = ["ferry", "harbour", "ticket", "island", "storm", "cabin", "deck", "captain", "summer", "bicycle"]
    cards = [{"id": word, "title": "", "text": f"{word} {word} {word}. All about it. Nothing else."} for word in words]
    write_lines(folder / "cards.jsonl", cards)
    write_lines(folder / "golden.jsonl", [{"id": f"q-{word}", "query": f"{word}?", "expected": [word]} for word in words[:8]])
    return folder


def test_a_drill_says_what_was_noticed_what_was_named_and_what_nobody_would_see(
    small: Path, tmp_path: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in small.iterdir()}
    assert kbgate("drill", small, "--sample", 16, "--json", tmp_path / "drill.json") == 0
    shown = capsys.readouterr().out
    assert "mutants that make a passing case fail: 0 unnoticed, 0 only warned of" in shown
    assert "cards whose loss nobody would notice: 2 of 10\n  bicycle\n  summer\n" in shown
    assert "faults this suite cannot have:" in shown
    assert "table cut" in shown
    mutants = json.loads((tmp_path / "drill.json").read_text())["mutants"]
    assert len(mutants) == 16
    dropped = [mutant for mutant in mutants if mutant["fault"] == "dropped" and not mutant["equivalent"]]
    assert all(mutant["noticed"] and mutant["right"] for mutant in dropped)
    assert {path.name: path.read_bytes() for path in small.iterdir()} == before


def test_a_suite_whose_model_is_not_there_is_bad_input(small: Path, home: Path) -> None:
    edit_text(
        small / "suite.toml", '[retrieval]\nmethod = "bm25"', '[embedding]\nmodel = "./gone"\n[retrieval]\nmethod = "dense"'
    )
    assert trial_of(small, home, 5).verdict == "bad input"


def test_a_part_of_a_suite_keeps_only_its_own_exceptions(small: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    with (small / "suite.toml").open("a") as file:
        for word in ("ferry", "deck", "storm", "cabin", "ticket"):
            file.write(f'[[allow]]\ncase = "q-{word}"\ncheck = "newly_failing"\nreason = "meant"\nuntil = 2027-01-01\n')
    assert kbgate("drill", small, "--sample", 1, "--cards", 4) == 0
    assert re.search(r"^all +1 ", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.slow
def test_the_bundled_suites_drill(kbgate: CLI, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbgate("drill", MEDICATION, "--sample", 54, "--seed", 1, "--json", tmp_path / "drill.json") == 0
    mutants = json.loads((tmp_path / "drill.json").read_text())["mutants"]
    noticed = [mutant for mutant in mutants if mutant["noticed"] and not mutant["equivalent"]]
    assert sum(mutant["right"] for mutant in noticed) >= 0.9 * len(noticed)
    assert not any(mutant["missed"] for mutant in mutants)
    assert len(noticed) >= 30


def test_a_copy_brings_the_baseline_it_is_held_against(tmp_path: Path) -> None:
    """All of its files and none else; without one there is none."""
    base = tmp_path / "base"
    base.mkdir()
    for name in ("baseline.json", "baseline.cases.jsonl", "suite.toml", "notes.txt"):
        (base / name).write_text(name)
    write(a_copy(), tmp_path / "with", base)
    write(a_copy(), tmp_path / "without")
    own = {"suite.toml", "cards.jsonl", "golden.jsonl"}
    assert {file.name for file in (tmp_path / "with").iterdir()} == {*own, "baseline.json", "baseline.cases.jsonl"}
    assert (tmp_path / "with" / "baseline.json").read_text() == "baseline.json"
    assert {file.name for file in (tmp_path / "without").iterdir()} == own
