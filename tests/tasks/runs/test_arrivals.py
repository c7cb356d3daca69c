from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.flows import evaluate
from kbgate.tasks import stages
from kbgate.tasks.runs.arrivals import already_judged, announced_ids, arrivals, touched_cases
from tests.conftest import edit_lines, edit_text, read_lines

CLI = Callable[..., int]
DAY = dt.date(2026, 6, 1)


def inputs_of(suite: Path, home: Path) -> Any:
    return evaluate.load(stages.load_suite(suite), home)


def add_card(suite: Path, **fields: Any) -> None:
    import json

    with (suite / "cards.jsonl").open("a") as file:
        file.write(json.dumps({"language": "en", "metadata": {"audience": "public"}, **fields}) + "\n")


def test_what_came_in_since_the_last_green_run(medication: Path, kbgate: CLI, home: Path) -> None:
    assert kbgate("evaluate", medication) == 0
    add_card(medication, id="hours", text="The pharmacy opens at eight.")
    edit_lines(
        medication / "cards.jsonl",
        lambda c: {**c, "updated_at": "2026-01-01", "source_url": "x"} if c["id"] == "tb-observed" else c,
    )
    edit_lines(medication / "cards.jsonl", lambda c: None if c["id"] == "cost-assistance-2025" else c)
    came = arrivals(inputs_of(medication, home), home, "evening")
    assert came is not None
    assert (came.new, came.changed, came.removed) == (("hours",), ("tb-observed",), ("cost-assistance-2025",))
    assert came.since.startswith("run ")
    assert came.batch == "evening"


def test_without_a_run_it_is_since_the_baseline_and_without_that_nothing(medication: Path, tmp_path: Path) -> None:
    came = arrivals(inputs_of(medication, tmp_path), tmp_path)
    assert came is not None
    assert (came.since, came.new, came.changed, came.removed) == ("the baseline", (), (), ())
    for file in medication.glob("baseline*"):
        file.unlink()
    assert arrivals(inputs_of(medication, tmp_path), tmp_path) is None


def touched(suite: Path, home: Path) -> set[str]:
    inputs = inputs_of(suite, home)
    material = evaluate.prepare(inputs, home)
    vectors = stages.embed_queries(inputs.suite, material.model, inputs.golden.cases, home / "vectors")
    return set(touched_cases(inputs, material, vectors, DAY))


def test_nothing_changed_touches_nothing(medication: Path, home: Path) -> None:
    assert touched(medication, home) == set()


def test_a_changed_gold_touches_its_cases(medication: Path, home: Path) -> None:
    edit_lines(medication / "cards.jsonl", lambda c: {**c, "source_url": "x"} if c["id"] == "epilepsy-missed" else c)
    found = touched(medication, home)
    assert {"seizure-skipped", "lamictal-week", "c-fit-pill", "f-gold-miss"} <= found
    assert len(found) < 120


def test_a_new_card_touches_the_cases_it_reaches_and_no_others(medication: Path, home: Path) -> None:
    add_card(medication, id="zaps", title="Brain zaps after Effexor", text="Zaps in the head when one runs out of Effexor.")
    found = touched(medication, home)
    assert "brain-zaps" in found
    assert "powder-breath" not in found
    assert len(found) < 60


def test_a_card_nobody_may_see_touches_nobody(medication: Path, home: Path) -> None:
    add_card(medication, id="zaps", text="Zaps in the head when one runs out of Effexor.", valid_until="2020-01-01")
    assert touched(medication, home) == set()


@pytest.mark.parametrize("change", ["nothing", "cards", "cases", "gates", "baseline", "day", "bad line"])
def test_only_exactly_the_same_is_already_judged(change: str, medication: Path, kbgate: CLI, home: Path) -> None:
    assert kbgate("evaluate", medication) == 0
    if change == "cards":
        add_card(medication, id="hours", text="The pharmacy opens at eight.")
    if change == "cases":
        edit_lines(medication / "golden.jsonl", lambda c: {**c, "query": "?!"} if c["id"] == "n-bike" else c)
    if change == "gates":
        edit_text(medication / "suite.toml", "tolerance = 0.02}", "tolerance = 0.03}")
    if change == "baseline":
        assert kbgate("baseline", "update", medication, "--reason", "other") == 0
        assert kbgate("evaluate", medication, "--fast") == 0
    if change == "bad line":
        edit_text(medication / "suite.toml", "[kb]", '[kb]\non_bad_card = "reject"')
        assert kbgate("evaluate", medication) == 0
        with (medication / "cards.jsonl").open("a") as file:
            file.write('{"id": "bad"}\n')
    inputs = inputs_of(medication, home)
    day = DAY + dt.timedelta(days=change == "day")
    judged = already_judged(inputs, evaluate.fingerprints_of(inputs, evaluate.prepare(inputs, home)), day, home)
    assert (judged is None) == (change != "nothing")
    if judged is not None:
        assert (judged.name, judged.exit_code) == ("PASS", 0)


@pytest.mark.parametrize(
    ("told", "ids"),
    [
        (None, ()), ("", ()), ("None", ()), ("a", ("a",)), ("a, b,", ("a", "b")), (["a", 1], ("a", "1")),
        ("['a', 'b']", ("a", "b")), ('["a"]', ("a",)), ("[a, b]", ("a", "b")), (5, ("5",)), ("[" * 500, ()),
    ],
)  # fmt: skip
def test_ids_an_event_told_in_whatever_form(told: object, ids: tuple[str, ...]) -> None:
    assert announced_ids(told) == ids


def test_an_edited_case_and_a_changed_setting_touch(medication: Path, home: Path) -> None:
    edit_lines(medication / "golden.jsonl", lambda c: {**c, "query": "?!"} if c["id"] == "brain-zaps" else c)
    assert touched(medication, home) == {"brain-zaps"}
    edit_text(medication / "suite.toml", "[gates]", "[retrieval]\nrrf_k = 50\n\n[gates]")
    assert len(touched(medication, home)) == len(read_lines(medication / "golden.jsonl"))
