from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks import exam
from kbgate.tasks.clock import Clock
from kbgate.tasks.domain import Index, Inputs
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.retrieval import RETRIEVERS, ScoreKind, Search, retriever
from kbgate.tasks.runs.arrivals import announced_ids, arrivals, touched_cases
from kbgate.tasks.settings import Suite
from tests.conftest import edit_lines, edit_text, read_lines

CLI = Callable[..., int]
CLOCK = Clock.at(dt.datetime(2026, 6, 1, tzinfo=dt.UTC))


def inputs_of(suite: Path, home: Path) -> Inputs:
    return exam.load(load_suite(suite), home)


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
    change = arrivals(inputs_of(medication, home), home, "evening")
    assert change is not None
    assert (change.new, change.changed, change.removed) == (("hours",), ("tb-observed",), ("cost-assistance-2025",))
    assert change.since.startswith("run ")
    assert change.batch == "evening"


def test_without_a_run_it_is_since_the_baseline_and_without_that_nothing(medication: Path, tmp_path: Path) -> None:
    change = arrivals(inputs_of(medication, tmp_path), tmp_path)
    assert change is not None
    assert (change.since, change.new, change.changed, change.removed) == ("the baseline", (), (), ())
    for file in medication.glob("baseline*"):
        file.unlink()
    assert arrivals(inputs_of(medication, tmp_path), tmp_path) is None


def touched(suite: Path, home: Path) -> set[str]:
    inputs = inputs_of(suite, home)
    material = exam.prepare(inputs, home)
    return set(touched_cases(inputs, material, exam.embed(inputs, material, inputs.golden.cases, home), CLOCK.as_of))


def test_nothing_changed_touches_nothing(medication: Path, home: Path) -> None:
    assert touched(medication, home) == set()


def test_a_changed_gold_touches_its_cases(medication: Path, home: Path) -> None:
    edit_lines(medication / "cards.jsonl", lambda c: {**c, "source_url": "x"} if c["id"] == "epilepsy-missed" else c)
    cases = touched(medication, home)
    assert {"seizure-skipped", "lamictal-week", "c-fit-pill", "f-gold-miss"} <= cases
    assert len(cases) < 120


def test_a_new_card_touches_the_cases_it_reaches_and_no_others(medication: Path, home: Path) -> None:
    add_card(medication, id="zaps", title="Brain zaps after Effexor", text="Zaps in the head when one runs out of Effexor.")
    cases = touched(medication, home)
    assert "brain-zaps" in cases
    assert "powder-breath" not in cases
    assert len(cases) < 60


def test_a_card_nobody_may_see_touches_nobody(medication: Path, home: Path) -> None:
    add_card(medication, id="zaps", text="Zaps in the head when one runs out of Effexor.", valid_until="2020-01-01")
    assert touched(medication, home) == set()


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (None, ()), ("", ()), ("None", ()), ("a", ("a",)), ("a, b,", ("a", "b")), (["a", 1], ("a", "1")),
        ("['a', 'b']", ("a", "b")), ('["a"]', ("a",)), ("[a, b]", ("a", "b")), (5, ("5",)), ("[" * 500, ()),
    ],
)  # fmt: skip
def test_ids_that_an_event_announced_in_whatever_form(given: object, ids: tuple[str, ...]) -> None:
    assert announced_ids(given) == ids


def test_an_edited_case_and_a_changed_setting_touch(medication: Path, home: Path) -> None:
    edit_lines(medication / "golden.jsonl", lambda c: {**c, "query": "?!"} if c["id"] == "brain-zaps" else c)
    assert touched(medication, home) == {"brain-zaps"}
    edit_text(medication / "suite.toml", "[gates]", "[retrieval]\nrrf_k = 50\n\n[gates]")
    assert len(touched(medication, home)) == len(read_lines(medication / "golden.jsonl"))


@pytest.fixture
def own_lane() -> Iterator[str]:
    """A retrieval method of somebody's own, whose scores nobody else can tell."""

    @retriever("own", scores=ScoreKind.OTHER)
    def own(index: Index, suite: Suite) -> Search:
        """Ranks as nobody knows."""
        raise AssertionError("what a change does to it is not found by asking it")

    yield "own"
    RETRIEVERS.remove("own")


def accepted_by(suite: Path, method: str, inputs: Inputs, home: Path) -> Inputs:
    """The inputs as if the bundled baseline had been accepted with another method."""
    edit_text(suite / "suite.toml", "[gates]", f'[retrieval]\nmethod = "{method}"\n\n[gates]')
    other = inputs_of(suite, home)
    assert inputs.baseline is not None
    provenance = inputs.baseline.summary.provenance.model_copy(update={"settings": exam.prepare(other, home).settings})
    summary = inputs.baseline.summary.model_copy(update={"provenance": provenance})
    return dataclasses.replace(other, baseline=dataclasses.replace(inputs.baseline, summary=summary))


@pytest.mark.parametrize("change", ["nothing", "a new card", "a changed card"])
def test_whatever_comes_touches_every_case_of_a_method_of_ones_own(
    change: str, own_lane: str, medication: Path, home: Path
) -> None:
    if change == "a new card":
        add_card(medication, id="hours", text="The pharmacy opens at eight.")
    if change == "a changed card":
        edit_lines(medication / "cards.jsonl", lambda c: {**c, "source_url": "x"} if c["id"] == "tb-observed" else c)
    inputs = accepted_by(medication, own_lane, inputs_of(medication, home), home)
    material = exam.prepare(inputs, home)
    cases = touched_cases(inputs, material, exam.embed(inputs, material, inputs.golden.cases, home), CLOCK.as_of)
    assert set(cases) == (set() if change == "nothing" else set(inputs.golden.cases))


@pytest.mark.parametrize("method", ["bm25", "dense"])
def test_a_lane_is_asked_by_the_kind_of_its_scores(method: str, medication: Path, home: Path) -> None:
    add_card(medication, id="zaps", title="Brain zaps after Effexor", text="Zaps in the head when one runs out of Effexor.")
    inputs = accepted_by(medication, method, inputs_of(medication, home), home)
    material = exam.prepare(inputs, home)
    cases = touched_cases(inputs, material, exam.embed(inputs, material, inputs.golden.cases, home), CLOCK.as_of)
    assert "brain-zaps" in cases
    assert len(cases) < len(inputs.golden.cases)
