"""What every registered retrieval method keeps, whatever the index: asked in memory over tiny random ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbgate.tasks.domain import Index, Predicate, Question, Ranked
from kbgate.tasks.predicates import matches
from kbgate.tasks.retrieval import RETRIEVERS, ScoreKind
from kbgate.tasks.settings import Retrieval, Suite
from kbgate.tasks.tables import DIGITS, Hits, Rows, Value, Vectors

WORDS = ("river", "bridge", "flood", "2024", "garden", "the", "running", "Brücke")
DIRECTIONS = np.array(
    [[a, b, c, d] for a in (0.5, -0.5) for b in (0.5, -0.5) for c in (0.5, -0.5) for d in (0.5, -0.5)]
    + [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, -1, 0], [0, 0, 0, -1]],
    dtype=np.float32,
)
"""Unit vectors whose cosines are exact, so that many are equal and ids decide."""
KINDS = ("a", "b", "c")
PREDICATES: tuple[Predicate, ...] = (
    {}, {"kind": "a"}, {"kind": {"$in": ["a", "b"]}}, {"$or": [{"kind": "c"}, {"size": {"$gte": 2}}]}, {"kind": "none"},
)  # fmt: skip

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
languages = st.sampled_from(("", "en", "de"))
directions = st.integers(0, len(DIRECTIONS) - 1)
questions = st.builds(
    lambda text, language, where, way: Question(text, language, where, DIRECTIONS[way]),
    texts, languages, st.sampled_from(PREDICATES), directions,
)  # fmt: skip


@st.composite
def indexes(draw: st.DrawFn) -> Index:
    """Up to 14 rows that stand for up to 6 cards, some for several."""
    count = draw(st.integers(1, 14))
    ids = tuple(f"r{number:02d}" for number in range(count))
    cards = [tuple(sorted(draw(st.sets(st.sampled_from("uvwxyz"), min_size=1, max_size=3)))) for _ in ids]
    fields: list[Mapping[str, Value]] = [{"kind": draw(st.sampled_from(KINDS)), "size": draw(st.integers(0, 3))} for _ in ids]
    rows = Rows(
        ids=ids,
        texts=tuple(draw(texts) for _ in ids),
        languages=tuple(draw(languages) for _ in ids),
        fields=tuple(fields),
        chunks=tuple(tuple(f"{card}::{row}" for card in of_row) for row, of_row in zip(ids, cards, strict=True)),
        cards=tuple(cards),
    )
    return Index(rows, DIRECTIONS[[draw(directions) for _ in ids]])


def suite_of(method: str, candidates: int) -> Suite:
    retrieval = Retrieval(method=method, candidates=candidates)
    return Suite(folder=Path(), name="x", top_k=2, k_values=(1, 2), retrieval=retrieval)


def ask(method: str, index: Index, asked: list[Question], candidates: int) -> list[Ranked]:
    suite = suite_of(method, candidates)
    return RETRIEVERS[method].connect(index, suite)(asked, suite.cuts[-1])


def pairs(answer: Ranked) -> Mapping[str, list[tuple[str, float]]]:
    return {lane: list(hits.pairs()) for lane, hits in answer.lanes.items()}


def eligible(index: Index, where: Predicate) -> list[int]:
    return [place for place, fields in enumerate(index.rows.fields) if not where or matches(where, fields)]


@pytest.mark.parametrize("method", sorted(RETRIEVERS))
@settings(max_examples=60)
@given(index=indexes(), asked=st.lists(questions, min_size=1, max_size=4), candidates=st.sampled_from((2, 3, 100)))
def test_answers_are_the_same_twice_ordered_whole_and_eligible(
    method: str, index: Index, asked: list[Question], candidates: int
) -> None:
    first = ask(method, index, asked, candidates)
    assert [pairs(answer) for answer in first] == [pairs(answer) for answer in ask(method, index, asked, candidates)]
    assert len(first) == len(asked)
    # Nobody's answer hangs on who else asks.
    assert [pairs(answer) for answer in first] == [pairs(ask(method, index, [one], candidates)[0]) for one in asked]
    for answer, question in zip(first, asked, strict=True):
        assert answer.outcome.measured, answer.detail
        assert set(answer.lanes) == {method, *RETRIEVERS[method].lanes}
        allowed = {card for place in eligible(index, question.where) for card in index.rows.cards[place]}
        for hits in answer.lanes.values():
            assert len(set(hits.ids)) == len(hits.ids)
            assert set(hits.ids) <= allowed
            assert np.isfinite(hits.scores).all()
            assert list(hits.pairs()) == list(Hits.ranked(dict(hits.pairs())).pairs())
        if not RETRIEVERS[method].short_list_is_legal:
            assert len(answer.lanes[method]) >= min(2, len(allowed))


COSINES = sorted(name for name, part in RETRIEVERS.items() if part.scores is ScoreKind.COSINE)


def by_hand(index: Index, question: Question, vector: Vectors, candidates: int) -> list[tuple[str, float]]:
    """The cards of the best `candidates` rows, of twice as many while these hold fewer than k."""
    cosines = {place: round(float(np.dot(index.vectors[place], vector)), DIGITS) for place in eligible(index, question.where)}
    order = sorted(cosines, key=lambda place: (-cosines[place], index.rows.ids[place]))
    depth = candidates
    while True:
        best: dict[str, float] = {}
        for place in order[:depth]:
            for card in index.rows.cards[place]:
                best.setdefault(card, cosines[place])
        if len(best) >= 2 or depth >= len(order):
            return sorted(best.items(), key=lambda item: (-item[1], item[0]))
        depth *= 2


@pytest.mark.parametrize("method", COSINES)
@settings(max_examples=150)
@given(index=indexes(), question=questions, candidates=st.sampled_from((2, 3, 100)))
def test_a_lane_of_cosines_is_what_numpy_says(method: str, index: Index, question: Question, candidates: int) -> None:
    assert question.vector is not None
    (answer,) = ask(method, index, [question], candidates)
    assert list(answer.lanes[method].pairs()) == by_hand(index, question, question.vector, candidates)
