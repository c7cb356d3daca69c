"""What a change touches is found by ranking every case; where that is not green, or cannot be done, all are asked."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbgate.tasks import exam
from kbgate.tasks.clock import Clock
from kbgate.tasks.domain import Index, Inputs
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.retrieval import RETRIEVERS, ScoreKind, Search, retriever
from kbgate.tasks.runs import touched as module
from kbgate.tasks.runs.touched import Touched, find_touched
from kbgate.tasks.settings import Suite
from tests.conftest import edit_lines, edit_text, read_lines

CLOCK = Clock.at(dt.datetime(2026, 6, 1, tzinfo=dt.UTC))
Edit = Callable[[Path], None]


def inputs_of(suite: Path, home: Path) -> Inputs:
    return exam.load(load_suite(suite), home)


def add_cards(suite: Path, *cards: dict[str, Any]) -> None:
    with (suite / "cards.jsonl").open("a") as file:
        for card in cards:
            file.write(json.dumps({"language": "en", "metadata": {"audience": "public"}, **card}) + "\n")


def touched(inputs: Inputs, home: Path) -> Touched:
    material = exam.prepare(inputs, home)
    return find_touched(inputs, material, exam.embed(inputs, material, inputs.golden.cases, home), CLOCK)


def test_nothing_changed_touches_nothing(medication: Path, home: Path) -> None:
    assert touched(inputs_of(medication, home), home) == Touched()


def test_a_changed_gold_touches_its_cases_also_where_every_rank_stays(medication: Path, home: Path) -> None:
    gold = next(case for case in read_lines(medication / "golden.jsonl") if "must_cite_one_of" in case)
    card = gold["must_cite_one_of"][0]
    edit_lines(medication / "cards.jsonl", lambda c: {**c, "source_url": "x"} if c["id"] == card else c)
    reach = touched(inputs_of(medication, home), home)
    assert reach.all == ""
    assert gold["id"] in reach.cases
    assert len(reach.cases) < len(read_lines(medication / "golden.jsonl"))


def test_a_new_card_touches_the_cases_it_reaches(medication: Path, home: Path) -> None:
    case = next(c for c in read_lines(medication / "golden.jsonl") if c.get("language") == "en" and "filter" not in c)
    add_cards(medication, {"id": "echo", "title": case["query"], "text": case["query"]})
    reach = touched(inputs_of(medication, home), home)
    assert reach.all or case["id"] in reach.cases


def test_words_that_weigh_otherwise_are_seen_where_no_new_card_comes_near(medication: Path, home: Path) -> None:
    """The words of a question on sixty cards that nobody may find: nothing stands above its gold but by its words' weight."""
    cases = [c for c in read_lines(medication / "golden.jsonl") if c.get("language") == "en"]
    flood = " ".join(case["query"] for case in cases)
    cards = [{"id": f"flood-{n}", "text": f"{flood} {n}", "valid_until": "2020-01-01"} for n in range(60)]
    add_cards(medication, *cards)
    reach = touched(inputs_of(medication, home), home)
    assert reach.all or reach.cases


def test_edited_new_and_renamed_cases(medication: Path, home: Path) -> None:
    """An edited case and a new one are touched; another name makes no other case of it."""
    first, second, *_ = [case["id"] for case in read_lines(medication / "golden.jsonl") if not case.get("canary")]
    edits = {first: {"notes": "x", "language": "xx"}, second: {"id": "another-name"}}
    edit_lines(medication / "golden.jsonl", lambda c: {**c, **edits.get(c["id"], {})})
    reach = touched(inputs_of(medication, home), home)
    assert reach.all or (first in reach.cases and "another-name" not in reach.cases)


def lose_a_gold(suite: Path) -> None:
    golds = [case["must_cite_one_of"] for case in read_lines(suite / "golden.jsonl") if "must_cite_one_of" in case]
    alone = next(of_case[0] for of_case in golds if len(of_case) == 1)
    edit_lines(suite / "cards.jsonl", lambda c: None if c["id"] == alone else c)


def no_baseline(suite: Path) -> None:
    for file in suite.glob("baseline*"):
        file.unlink()


def other_fusion(suite: Path) -> None:
    edit_text(suite / "suite.toml", "[gates]", "[retrieval]\nrrf_k = 50\n\n[gates]")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (no_baseline, "there is no baseline yet"), (other_fusion, "is not as it was in the baseline"),
        (lose_a_gold, "exact ranking of every case is BLOCK: gold removed"),
    ],
)  # fmt: skip
def test_where_no_subset_will_do_the_full_set_is_asked(change: Edit, why: str, medication: Path, home: Path) -> None:
    change(medication)
    reach = touched(inputs_of(medication, home), home)
    assert why in reach.all
    assert reach.cases == ()


def test_more_pairs_than_are_ranked_ask_the_full_set(medication: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = inputs_of(medication, home)
    pairs = len(inputs.golden.cases) * len(exam.prepare(inputs, home).rows)
    monkeypatch.setattr(module, "MOST_PAIRS", pairs)
    assert touched(inputs, home).all == ""
    monkeypatch.setattr(module, "MOST_PAIRS", pairs - 1)
    assert f"are {pairs} pairs" in touched(inputs, home).all


def test_a_vector_that_is_no_number_is_not_ranked_past(medication: Path, home: Path) -> None:
    inputs = inputs_of(medication, home)
    material = exam.prepare(inputs, home)
    vectors = exam.embed(inputs, material, inputs.golden.cases, home).copy()
    vectors[0] = np.nan
    assert "could not measure 1 case" in find_touched(inputs, material, vectors, CLOCK).all


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
    """The inputs as if their baseline had been accepted with another method."""
    edit_text(suite / "suite.toml", "[gates]", f'[retrieval]\nmethod = "{method}"\n\n[gates]')
    other = inputs_of(suite, home)
    assert inputs.baseline is not None
    provenance = inputs.baseline.summary.provenance.model_copy(update={"settings": exam.prepare(other, home).settings})
    summary = inputs.baseline.summary.model_copy(update={"provenance": provenance})
    return dataclasses.replace(other, baseline=dataclasses.replace(inputs.baseline, summary=summary))


def test_a_method_of_ones_own_is_asked_in_full(own_lane: str, medication: Path, home: Path) -> None:
    assert touched(accepted_by(medication, own_lane, inputs_of(medication, home), home), home) == Touched(
        all="only own itself can say how it ranks"
    )
