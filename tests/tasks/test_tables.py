"""Tables: rankings, scores and rows as columns. What they say, what they refuse, and that no hit is an object of its own."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgate.tasks.comparison.scoring import score
from kbgate.tasks.domain import Card, Case, Cases, KnowledgeBase, Mode, Outcome
from kbgate.tasks.metrics import METRICS, figures_of
from kbgate.tasks.results import Answer, Run
from kbgate.tasks.retrieval import run_of
from kbgate.tasks.runs.columns import run_table, write_parquet
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import DIGITS, NO_SCORES, NOTHING, Figure, Hits, LaneScores, Rows

T = TypeVar("T")
NAMES = st.text("abcdef", min_size=1, max_size=3)
SCORES = st.dictionaries(NAMES, st.floats(-10, 10), max_size=12)

# ------------------------------------------------------------------ hits


@given(SCORES)
def test_hits_are_ranked_by_rounded_score_and_then_by_id(scores: Mapping[str, float]) -> None:
    hits = Hits.ranked(scores)
    expected = sorted(((round(value, DIGITS), name) for name, value in scores.items()), key=lambda pair: (-pair[0], pair[1]))
    assert list(hits.pairs()) == [(name, value) for value, name in expected]
    assert len(hits) == len(scores)
    for rank, (name, value) in enumerate(hits.pairs(), start=1):
        assert (hits.rank(name), hits.score(rank)) == (rank, value)


@given(SCORES, st.integers(0, 15), st.sets(NAMES))
def test_parts_of_hits_keep_order_and_scores(scores: Mapping[str, float], count: int, names: set[str]) -> None:
    hits = Hits.ranked(scores)
    pairs = list(hits.pairs())
    assert list(hits.head(count).pairs()) == pairs[:count]
    assert list(hits.only(names).pairs()) == [pair for pair in pairs if pair[0] in names]
    for _, limit in pairs:
        assert hits.at_least(limit) == {name for name, value in pairs if value >= limit}


def test_equal_to_six_decimals_is_equal() -> None:
    assert Hits.ranked({"b": 0.1234564, "a": 0.1234561, "c": 0.1234567}).ids == ("c", "a", "b")


def test_what_was_not_found_has_no_rank_and_no_score() -> None:
    hits = Hits.ranked({"a": 1.0})
    assert (hits.rank("b"), hits.score(0), hits.score(2), NOTHING.rank("a"), NOTHING.score(1)) == (None,) * 5
    assert (len(NOTHING), list(NOTHING.pairs()), NOTHING.at_least(-math.inf)) == (0, [], frozenset())


def test_pairs_are_kept_as_given_so_that_what_is_wrong_with_them_shows() -> None:
    hits = Hits.of([("a", 0.5), ("b", math.nan), ("a", 0.7)])
    assert hits.ids == ("a", "b", "a")
    assert hits.scores.tolist()[::2] == [0.5, 0.7]
    assert math.isnan(hits.scores[1])
    assert len(Hits.of(iter([]))) == 0


# ------------------------------------------------------------------ figures

METRIC_NAMES = st.text("abcdefghijklmnopqrstuvwxyz_0123456789 -", min_size=1)


@given(METRIC_NAMES, st.none() | st.integers(1, 10**6))
def test_a_figure_reads_back(metric: str, k: int | None) -> None:
    figure = Figure(metric, k)
    assert Figure.parse(str(figure)) == figure
    assert str(Figure.parse(str(figure))) == str(figure)


def test_every_figure_of_a_suite_reads_back_and_is_told_from_every_other() -> None:
    figures = figures_of(Suite(folder=Path(), name="x"))
    assert [Figure.parse(str(figure)) for figure in figures] == list(figures)
    assert len({str(figure) for figure in figures}) == len(figures)
    assert {figure.metric for figure in figures} == set(METRICS)


@pytest.mark.parametrize(
    "text", ["ndcg@", "ndcg@0", "ndcg@-1", "ndcg@1.5", "ndcg@+1", "ndcg@ 1", "ndcg@ten", "ndcg@1@2", "ndcg@1_0", "ndcg@²"]
)
def test_what_is_no_cut_off_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a cut-off is a whole number above 0"):
        Figure.parse(text)


def test_a_figure_has_one_text() -> None:
    assert str(Figure.parse("ndcg@010")) == "ndcg@10"


# ------------------------------------------------------------------ scores

RECALL, LEAKAGE = Figure("recall", 3), Figure("leakage")


def a_lane() -> LaneScores:
    return LaneScores.of_rows((RECALL, LEAKAGE), {"q1": [0.5, None], "q2": [None, None], "q3": [0.0, 1.0]})


def test_a_figure_that_is_not_defined_is_absent_and_never_0() -> None:
    scores = a_lane()
    assert scores.cases == ("q1", "q2", "q3")
    assert scores[RECALL] == {"q1": 0.5, "q3": 0.0}
    assert scores[LEAKAGE] == {"q3": 1.0}
    assert [scores.of_case(case) for case in scores.cases] == [{RECALL: 0.5}, {}, {RECALL: 0.0, LEAKAGE: 1.0}]


def test_what_a_lane_does_not_have_is_empty() -> None:
    assert (a_lane()[Figure("recall", 5)], a_lane().of_case("q9")) == ({}, {})
    assert (NO_SCORES[RECALL], NO_SCORES.of_case("q1"), list(NO_SCORES.not_finite())) == ({}, {}, [])


def test_what_is_defined_and_no_number_is_told_from_what_is_not_defined() -> None:
    scores = LaneScores.of_rows((RECALL, LEAKAGE), {"q1": [math.nan, None], "q2": [None, math.inf], "q3": [1.0, None]})
    assert list(scores.not_finite()) == [("q1", RECALL), ("q2", LEAKAGE)]
    assert list(a_lane().not_finite()) == []


# ------------------------------------------------------------------ rows


def test_rows_know_their_cards() -> None:
    cards = (("a",), ("a", "b"), ("c",))
    rows = Rows(("r0", "r1", "r2"), ("",) * 3, ("",) * 3, ({},) * 3, (("a::00",), ("a::01", "b::00"), ("c::00",)), cards)
    assert len(rows) == 3
    assert rows.of_cards({"b", "c"}).tolist() == [False, True, True]
    assert rows.of_cards(set()).tolist() == [False] * 3
    assert (rows.places("a"), rows.places("z")) == ([0, 1], [])
    assert Rows((), (), (), (), (), ()).of_cards({"a"}).tolist() == []


# ------------------------------------------------------------------ memory

LANES = ("hybrid", "dense", "bm25", "exact")
CASES, DEPTH = 1000, 100
HITS = len(LANES) * CASES * DEPTH
CARDS = tuple(f"card-{number:05d}" for number in range(5000))


def a_run(cases: int = CASES) -> Run:
    """A run of so many cases x 100 hits x 4 lanes, made as retrieval makes one."""
    draw, lanes = np.random.default_rng(0), dict[str, dict[str, Hits]]()
    for lane in LANES:
        lanes[lane] = {}
        for number, first in enumerate(draw.integers(0, len(CARDS) - DEPTH, cases).tolist()):
            scores = zip(CARDS[first : first + DEPTH], draw.random(DEPTH).tolist(), strict=True)
            lanes[lane][f"q{number:04d}"] = Hits.ranked(dict(scores))
    return run_of("hybrid", {name: Answer(Outcome.ANSWERED, 1.0, len(CARDS)) for name in lanes["hybrid"]}, lanes, Mode.FULL)


def judged(cases: int) -> tuple[Suite, KnowledgeBase, Cases]:
    golden = {f"q{n:04d}": Case(f"q{n:04d}", "?", groups=((CARDS[n],),), grades={CARDS[n]: 1}) for n in range(cases)}
    kb = KnowledgeBase({card: Card(card, card, card) for card in CARDS})
    return Suite(folder=Path(), name="x", k_values=(10,)), kb, golden


@contextmanager
def traced() -> Iterator[None]:
    gc.collect()
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def megabytes(work: Callable[[], T]) -> tuple[T, float, float]:
    """What a step gives, what Python and numpy hold for it afterwards, and the most they held on the way."""
    gc.collect()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    given = work()
    after, peak = tracemalloc.get_traced_memory()
    return given, (after - before) / 1e6, (peak - before) / 1e6


def blocks() -> int:
    gc.collect()
    return sum(line.count for line in tracemalloc.take_snapshot().statistics("filename"))


@pytest.mark.slow
def test_a_run_is_columns_while_it_is_built_written_and_scored(tmp_path: Path) -> None:
    """400,000 hits. Measured in MB: the run 7.7, held and at its peak; 44.5 more while it is written, 6.6 while it is scored.

    The bounds leave half as much again. A tuple of id and score per hit would hold 35.7, nearly five times the run.
    """
    # What is imported on the way is no part of the run.
    small, (suite, kb, golden) = a_run(2), judged(2)
    write_parquet(run_table(small), tmp_path / "small.parquet")
    score(suite, kb, golden, small)
    suite, kb, golden = judged(CASES)
    with traced():
        run, held, building = megabytes(a_run)
        _, _, writing = megabytes(lambda: write_parquet(run_table(run), tmp_path / "run.parquet"))
        _, _, scoring = megabytes(lambda: score(suite, kb, golden, run))
        tuples, of_tuples, _ = megabytes(lambda: [[*hits.pairs()] for lane in run.lanes.values() for hits in lane.values()])
    assert sum(map(len, tuples)) == HITS
    assert building < 11.6
    assert writing < 66.8
    assert scoring < 9.9
    assert of_tuples > 3 * held


def test_no_hit_is_an_object() -> None:
    """What a run adds grows with its rankings, a handful of objects each, and not with their 100 hits."""
    a_run(2)
    gc.collect()  # what other tests left is not collected in between
    before = Counter(type(one) for one in gc.get_objects())
    with traced():
        at_first = blocks()
        run = a_run(50)
        added = blocks() - at_first
    after = Counter(type(one) for one in gc.get_objects())
    rankings = len(LANES) * 50
    assert sum(len(hits) for lane in run.lanes.values() for hits in lane.values()) == rankings * DEPTH
    assert after[Hits] - before[Hits] == rankings
    # Nothing that the collector follows beside the records themselves: no tuple, list or dict a hit, nor a record.
    assert sum((after - before).values()) < 2 * rankings
    # Nothing it does not follow either: a float, a string, a number of its own. A ranking has its record, its ids, its array
    # and that array's numbers.
    assert added < 10 * rankings
