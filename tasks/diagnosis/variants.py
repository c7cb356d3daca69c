"""An index in memory and its variants, each with one thing changed: what would a question find?

Every search here is exact. A variant is cheap, because only the rows it concerns are cut, embedded and counted again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from kbgate.tasks.comparison.statistics import Floats
from kbgate.tasks.diagnosis.lexicon import Lexicon, analyse, bm25
from kbgate.tasks.domain import Index, Question
from kbgate.tasks.index.vectors import Vectors
from kbgate.tasks.predicates import matches
from kbgate.tasks.registry import RETRIEVERS
from kbgate.tasks.retrieval.lanes import MARGIN, Eligible, Hits, Mask, cards_of, ranked, roll_up
from kbgate.tasks.retrieval.lexical import terms
from kbgate.tasks.settings import Suite

WORDS = "bm25"
"""The lane whose rank is told for every gold, whatever the method."""
SEARCHABLE = {"dense", "exact", WORDS}
"""Lanes that can be searched again here."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Rows that stand in for some cards."""

    rows: pd.DataFrame
    members: pd.DataFrame
    vectors: Vectors

    @cached_property
    def lexicon(self) -> Lexicon:
        """Their words."""
        return analyse(self.rows)

    @cached_property
    def cards(self) -> list[tuple[str, ...]]:
        """The cards each row stands for."""
        return list(cards_of(Index(self.rows, self.members, self.vectors, "", "")).values())


@dataclass(frozen=True)
class Change:
    """One thing changed: cards taken away, and what stands in their place."""

    gone: frozenset[str] = frozenset()
    put: Pieces | None = None


AS_IS = Change()


@dataclass(frozen=True)
class Ranking:
    """What a question would have found: (card, score) of the method, and of each of its lanes."""

    hits: Hits
    lanes: Mapping[str, Hits] = field(default_factory=dict)

    def rank(self, card: str, lane: str = "") -> int | None:
        """The card's rank, from 1; None where it was not found."""
        hits = self.lanes.get(lane, []) if lane else self.hits
        return next((rank for rank, (name, _) in enumerate(hits, start=1) if name == card), None)

    def score(self, rank: int) -> float | None:
        """The score at a rank; None beyond the end."""
        return self.hits[rank - 1][1] if 0 < rank <= len(self.hits) else None


class Variants:
    """The rows of an index, searched as the suite's method would, after any change."""

    def __init__(self, suite: Suite, rows: pd.DataFrame, members: pd.DataFrame, vectors: Vectors, home: Path):
        self.suite, self._vectors, self._home = suite, vectors, home
        index = Index(rows, members, vectors, "", "")
        self._rows, self._ids = rows, rows["id"].tolist()
        self._eligible, self._cards = Eligible(index), list(cards_of(index).values())

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes of the suite's method."""
        return RETRIEVERS[self.suite.retrieval.method].lanes or (self.suite.retrieval.method,)

    @cached_property
    def _lexicon(self) -> Lexicon:
        return analyse(self._rows, self._home)

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, cards in enumerate(self._cards):
            for card in cards:
                found.setdefault(card, []).append(place)
        return found

    def similarity(self, one: str, other: str) -> float:
        """Cosine similarity of the nearest rows of two cards; 0 where either has none."""
        here, there = (self._places.get(card, []) for card in (one, other))
        return float((self._vectors[here] @ self._vectors[there].T).max()) if here and there else 0.0

    def search(self, question: Question, change: Change) -> Ranking:
        """What a question finds after a change."""
        where = dict(question.where or {})
        alive = np.ones(len(self._ids), bool)
        for card in change.gone:
            for place in self._places.get(card, ()):
                alive[place] = not change.gone.issuperset(self._cards[place])
        may = self._eligible.rows(where) & alive
        if change.put:
            may = np.concatenate([may, [matches(where, fields) for fields in change.put.rows["fields"]]])
        lanes = {name: self._lane(name, question, change, alive, may) for name in dict.fromkeys((*self.lanes, WORDS))}
        method = RETRIEVERS[self.suite.retrieval.method]
        hits = method.fuse([lanes[name] for name in self.lanes], self.suite) if method.fuse else lanes[self.lanes[0]]
        least = self.suite.retrieval.min_similarity
        if least is not None:
            near = {card for card, cosine in lanes[next(name for name in self.lanes if name != WORDS)] if cosine >= least}
            hits = [hit for hit in hits if hit[0] in near]
        return Ranking(hits, lanes)

    def _lane(self, name: str, question: Question, change: Change, alive: Mask, may: Mask) -> Hits:
        scores = self._scores(name, question, change, alive)
        places = np.flatnonzero(may & (scores > 0) if name == WORDS else may)
        depth = self.suite.retrieval.candidates
        while True:
            best = places
            if len(places) > depth + MARGIN:
                best = places[np.argpartition(-scores[places], depth + MARGIN - 1)[: depth + MARGIN]]
            rows = {self._row(place, change): float(scores[place]) for place in best.tolist()}
            cards = {self._row(place, change): self._cards_at(place, change) for place in best.tolist()}
            hits = roll_up(ranked(rows)[:depth], cards)
            if len(hits) >= self.suite.cuts[-1] or len(rows) < depth or depth >= len(scores):
                return hits
            depth *= 2

    def _scores(self, name: str, question: Question, change: Change, alive: Mask) -> Floats:
        """A score for each row, and for each that was put beside them."""
        put = change.put
        if name == WORDS:
            parts = [(self._lexicon, alive)] + ([(put.lexicon, np.ones(len(put.rows), bool))] if put else [])
            return np.concatenate(bm25(terms(question.text, question.language), parts))
        assert question.vector is not None
        vectors = [self._vectors, *([put.vectors] if put else [])]
        return np.concatenate([part @ question.vector for part in vectors]).astype(float)

    def _row(self, place: int, change: Change) -> str:
        here = len(self._ids)
        return self._ids[place] if place < here or change.put is None else f"+{change.put.rows['id'].iat[place - here]}"

    def _cards_at(self, place: int, change: Change) -> tuple[str, ...]:
        here = len(self._ids)
        if place >= here and change.put is not None:
            return change.put.cards[place - here]
        return tuple(card for card in self._cards[place] if card not in change.gone)
