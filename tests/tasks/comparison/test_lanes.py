"""A method of two lanes over an index in memory: each lane has figures of its own, and what the index alone loses is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from kbgate.tasks.baseline.files import write_baseline
from kbgate.tasks.comparison.compare import exam_of
from kbgate.tasks.conclusions import Exam
from kbgate.tasks.domain import GoldenSet, Index, Inputs, Mode, Outcome, Question, Ranked
from kbgate.tasks.gate.verdict import judge
from kbgate.tasks.index.chunking import chunk
from kbgate.tasks.index.store import build_rows
from kbgate.tasks.results import Comparison
from kbgate.tasks.retrieval import RETRIEVERS, Retriever, ScoreKind, Search
from kbgate.tasks.retrieval.run import retrieve
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Figure, Hits
from tests.exams import CARDS, Desk, filler

FRUIT = ("apple", "pear", "plum", "cherry", "quince", "medlar")


@pytest.fixture
def orchard(desk: Desk) -> Desk:
    """Six cards, each about one fruit, and a question for each; of twelve cards the rest say nothing."""
    for n, fruit in enumerate(FRUIT):
        desk.cards[n]["text"] = f"The {fruit} is picked by hand."
        desk.case(f"q{n}", gold=f"c{n}", query=f"{fruit}?")
    return desk


def searched(desk: Desk, method: str = "hybrid", blind: Sequence[int] = ()) -> Exam:
    """The exam of a method; the vectors of blind questions point at the last card instead of their own."""
    exam = desk.exam({case["id"]: filler("c0") for case in desk.cases})
    retrieval = exam.suite.retrieval.model_copy(update={"method": method, "candidates": 12})
    suite = exam.suite.model_copy(update={"retrieval": retrieval})
    rows = build_rows(suite, exam.kb, chunk(suite, exam.kb))
    card = {name: place for place, names in enumerate(rows.cards) for name in names}
    vectors = np.eye(len(rows), dtype=np.float32)
    asked = [card["c11" if n in blind else f"c{n}"] for n in range(len(desk.cases))]
    run = retrieve(suite, Index(rows, vectors), exam.golden, vectors[asked], desk.clock.as_of, Mode.FULL)
    inputs = Inputs(suite, exam.kb, GoldenSet(exam.golden), exam.baseline)
    return exam_of(inputs, exam.golden, run, desk.clock)


def accept(desk: Desk, exam: Exam) -> None:
    evaluation = desk.evaluation({case["id"]: filler("c0") for case in desk.cases})
    write_baseline(dataclasses.replace(evaluation, exam=exam, verdict=judge(exam)), "a reason", False)


def figure(comparison: Comparison, lane: str, key: str = "contract@1") -> dict[str, float | None]:
    """The one place of these tests that knows how figures are kept."""
    row = comparison.figure(lane, Figure.parse(key))
    return {"baseline": row.baseline, "current": row.current, "delta": row.delta, "n": row.n}


def test_each_lane_is_scored_on_the_same_cases_and_beside_its_own_past(orchard: Desk) -> None:
    accept(orchard, searched(orchard))
    found = searched(orchard, blind=(1, 2, 3)).comparison
    assert figure(found, "dense") == {"baseline": 1.0, "current": 0.5, "delta": -0.5, "n": 6}
    assert figure(found, "bm25") == {"baseline": 1.0, "current": 1.0, "delta": 0.0, "n": 6}


def test_without_a_baseline_a_lane_stands_alone(orchard: Desk) -> None:
    found = figure(searched(orchard, blind=(0,)).comparison, "dense")
    assert (found["current"], found["n"]) == (pytest.approx(5 / 6), 6)
    assert (found["baseline"], found["delta"]) == (None, None)


@pytest.mark.parametrize("what", ["new", "edited", "removed"])
def test_lanes_of_other_cases_are_not_compared(what: str, orchard: Desk) -> None:
    """A lane's past is a mean over all its cases: with one more, one less or another it is a mean of something else."""
    accept(orchard, searched(orchard))
    if what == "new":
        orchard.case("q6", gold="c6", query="c6?")
    elif what == "edited":
        orchard.case("q5", gold="c5", query="a medlar?")
    else:
        del orchard.cases[5]
    assert figure(searched(orchard).comparison, "bm25")["baseline"] is None


def poor(index: Index, suite: Suite) -> Search:
    """A graph that finds three cards, and never the first."""

    def search(questions: Sequence[Question], k: int) -> list[Ranked]:
        hits = [(card, 1 - rank / 10) for rank, card in enumerate(CARDS[1:4])]
        return [Ranked(Outcome.ANSWERED, {"poor": Hits.of(hits)}, 1.0) for _ in questions]

    return search


def test_what_exact_search_finds_and_the_index_does_not_is_lost_by_the_index(
    orchard: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its top three are c1, c2, c3 for all. Exact search finds c0, and c4 and c5; for q5 it is as blind as the index."""
    monkeypatch.setitem(RETRIEVERS._load(), "poor", Retriever("poor", poor, ScoreKind.COSINE, reference="exact"))
    verdict = judge(searched(orchard, "poor", blind=(5,)))
    said = {reason.check: reason.sentence for reason in verdict.reasons}
    assert said["lost_by_index"] == "2 cases lost by the approximate index, found by exact search: q0, q4"
    assert verdict.name == "BLOCK"
    assert "limits.fidelity" in said


def test_an_index_that_finds_what_exact_search_finds_has_lost_nothing(orchard: Desk) -> None:
    """Also where both find nothing."""
    assert not any(r.check in ("lost_by_index", "limits.fidelity") for r in judge(searched(orchard, blind=(5,))).reasons)
