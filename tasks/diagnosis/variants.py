"""An index in memory and its variants, each with one thing changed: what would a question find?

Every search here is exact. A variant is cheap where a lane ranks by cosine or by words: only the rows it concerns are cut,
embedded and counted again. A lane that somebody brought is asked over an index built anew for each change: slow, and right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from kbgate.tasks.diagnosis.lexicon import Lexicon, analyse, bm25
from kbgate.tasks.domain import Index, Question
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.predicates import matches
from kbgate.tasks.retrieval import RETRIEVERS, Retriever, ScoreKind, Search, lanes_of
from kbgate.tasks.retrieval.eligible import Eligible
from kbgate.tasks.retrieval.lanes import MARGIN, roll_up
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import NOTHING, Floats, Hits, Mask, Rows, Vectors
from kbgate.tasks.words.analyser import analyser_of

_KEPT = 8
"""Indexes built anew that are kept: a change is asked for many questions in a row."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Rows that stand in for some cards."""

    rows: Rows
    vectors: Vectors


@dataclass(frozen=True, slots=True)
class Change:
    """One thing changed: cards taken away, and what stands in their place."""

    gone: frozenset[str] = frozenset()
    put: Pieces | None = None
    about: str = ""
    """What was changed, for a sentence; "" where the cards say it."""


AS_IS = Change()


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """What a question would have found: the cards of the method, and of each of its lanes."""

    hits: Hits
    lanes: Mapping[str, Hits] = field(default_factory=dict)
    words: Hits = NOTHING
    """By words alone, whatever the method."""

    def rank(self, card: str) -> int | None:
        """The card's rank, from 1; None where it was not found."""
        return self.hits.rank(card)

    def score(self, rank: int) -> float | None:
        """The score at a rank; None beyond the end."""
        return self.hits.score(rank)


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """The rows after a change: those of the index, then those that were put beside them."""

    change: Change
    alive: Mask
    """Of the index's rows, those that still stand for a card."""
    may: Mask
    """Of all rows, those that are alive and that a question may find."""


class Variants:
    """The rows of an index, searched as the suite's method would, after any change."""

    def __init__(self, suite: Suite, rows: Rows, vectors: Vectors, home: Path):
        """`home`: kbgate's, where the words of a large index are kept."""
        self.suite, self._rows, self._vectors, self._home = suite, rows, vectors, home
        self._eligible, self._method = Eligible(rows), RETRIEVERS[suite.retrieval.method]
        self._lanes = lanes_of(self._method.name) if self._method.fuse is not None else (self._method,)
        self._connected = lru_cache(maxsize=_KEPT)(self._connect)
        self._analyser, self._lexica = analyser_of(suite), WeakKeyDictionary[Pieces, Lexicon]()

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes of the suite's method."""
        return tuple(lane.name for lane in self._lanes)

    @cached_property
    def _lexicon(self) -> Lexicon:
        return analyse(self._rows, self._analyser, self._home)

    def _lexicon_of(self, pieces: Pieces) -> Lexicon:
        if pieces not in self._lexica:
            self._lexica[pieces] = analyse(pieces.rows, self._analyser)
        return self._lexica[pieces]

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The places of each card's rows."""
        places: dict[str, list[int]] = {}
        for place, cards in enumerate(self._rows.cards):
            for card in cards:
                places.setdefault(card, []).append(place)
        return places

    def similarity(self, one: str, other: str) -> float:
        """Cosine similarity of the nearest rows of two cards; 0 where either has none, or rows have no vectors."""
        left, right = (self._places.get(card, []) for card in (one, other))
        return float((self._vectors[left] @ self._vectors[right].T).max()) if left and right else 0.0

    def search(self, question: Question, change: Change) -> Ranking:
        """What a question finds after a change."""
        view = self._view(question, change)
        words = self._best(self._by_words(question, view), view)
        lanes = {lane.name: words if lane.scores is ScoreKind.BM25 else self._ask(lane, question, view) for lane in self._lanes}
        fuse = self._method.fuse
        hits = fuse(list(lanes.values()), self.suite) if fuse is not None else lanes[self._method.name]
        least = self.suite.retrieval.min_similarity
        cosine = next((lanes[lane.name] for lane in self._lanes if lane.scores is ScoreKind.COSINE), None)
        if least is not None and cosine is not None:
            hits = hits.only(cosine.at_least(least))
        return Ranking(hits, lanes, words)

    def _view(self, question: Question, change: Change) -> _View:
        alive = np.ones(len(self._rows), bool)
        for card in change.gone:
            for place in self._places.get(card, ()):
                alive[place] = not change.gone.issuperset(self._rows.cards[place])
        may = self._eligible.rows(question.where) & alive
        if change.put:
            put = [matches(question.where, fields) for fields in change.put.rows.fields]
            may = np.concatenate([may, np.array(put, bool)])
        return _View(change, alive, may)

    def _ask(self, lane: Retriever, question: Question, view: _View) -> Hits:
        """What a lane finds that does not rank by words."""
        if lane.scores is ScoreKind.COSINE:
            return self._best(self._by_cosine(question, view), view)
        (answer,) = self._connected(lane.name, view.change)([question], self.suite.cuts[-1])
        if not answer.outcome.measured:
            raise Unmeasured(f"'{lane.name}' cannot be asked over an index in memory ({answer.detail or answer.outcome})")
        return answer.lanes.get(lane.name, NOTHING)

    def _connect(self, lane: str, change: Change) -> Search:
        return RETRIEVERS[lane].connect(index_after(self._rows, self._vectors, change), self.suite)

    def _by_cosine(self, question: Question, view: _View) -> Floats:
        """The cosine of each row; -inf where it may not be found."""
        if question.vector is None:
            raise Unmeasured("a lane ranks by cosine, and its question has no vector")
        put = view.change.put
        vectors = [self._vectors, *([put.vectors] if put else [])]
        scores = np.concatenate([part @ question.vector for part in vectors]).astype(float)
        return np.where(view.may, scores, -np.inf)

    def _by_words(self, question: Question, view: _View) -> Floats:
        """BM25 of each row; -inf where it may not be found, and where it holds no word of the question."""
        put = view.change.put
        parts = [(self._lexicon, view.alive), *([(self._lexicon_of(put), np.ones(len(put.rows), bool))] if put else [])]
        scores = np.concatenate(bm25(self._analyser.terms(question.text, question.language), parts))
        return np.where(view.may & (scores > 0), scores, -np.inf)

    def _best(self, scores: Floats, view: _View) -> Hits:
        """The cards of the best rows: of `candidates` rows, and of more where these hold too few cards."""
        places, depth = np.flatnonzero(scores > -np.inf), self.suite.retrieval.candidates
        while True:
            best = places
            if len(places) > depth + MARGIN:
                best = places[np.argpartition(-scores[places], depth + MARGIN - 1)[: depth + MARGIN]]
            rows = {self._row(place, view.change): float(scores[place]) for place in best.tolist()}
            cards = {self._row(place, view.change): self._cards_at(place, view.change) for place in best.tolist()}
            hits = roll_up(Hits.ranked(rows).head(depth), cards)
            if len(hits) >= self.suite.cuts[-1] or len(rows) < depth or depth >= len(scores):
                return hits
            depth *= 2

    def _row(self, place: int, change: Change) -> str:
        """A row's id; one that was put may bear the id of a row that stands."""
        count = len(self._rows)
        return self._rows.ids[place] if place < count or change.put is None else f"+{change.put.rows.ids[place - count]}"

    def _cards_at(self, place: int, change: Change) -> tuple[str, ...]:
        count = len(self._rows)
        if place >= count and change.put is not None:
            return change.put.rows.cards[place - count]
        return tuple(card for card in self._rows.cards[place] if card not in change.gone)


def index_after(rows: Rows, vectors: Vectors, change: Change) -> Index:
    """The index that a change would have made: rows without the cards that are gone, and with what stands in their place."""
    parts = [(rows, vectors, change.gone)]
    if change.put:
        parts.append((change.put.rows, change.put.vectors, frozenset()))
    first: dict[str, tuple[Rows, Vectors, int]] = {}
    chunks: dict[str, set[tuple[str, str]]] = {}
    for of_part, its_vectors, gone in parts:
        for place, row in enumerate(of_part.ids):
            kept = {(chunk, chunk.rpartition("::")[0]) for chunk in of_part.chunks[place]}
            kept = {(chunk, card) for chunk, card in kept if card not in gone}
            if kept:
                first.setdefault(row, (of_part, its_vectors, place))
                chunks.setdefault(row, set()).update(kept)
    ids = sorted(first)
    origins, of_rows = [first[row] for row in ids], [sorted(chunks[row]) for row in ids]
    changed = Rows(
        ids=tuple(ids),
        texts=tuple(part.texts[place] for part, _, place in origins),
        languages=tuple(part.languages[place] for part, _, place in origins),
        fields=tuple(part.fields[place] for part, _, place in origins),
        chunks=tuple(tuple(chunk for chunk, _ in of_row) for of_row in of_rows),
        cards=tuple(tuple(dict.fromkeys(card for _, card in of_row)) for of_row in of_rows),
    )
    stacked = [its_vectors[place] for _, its_vectors, place in origins]
    return Index(changed, np.stack(stacked) if stacked else vectors[:0])
