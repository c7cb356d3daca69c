"""What grows with chunks or hits, kept as columns: a row of these tables is no object of its own, anywhere.

A table is a frozen class of parallel columns with typed accessors. Arrays have the types named here, and every figure is
rounded and compared as this page says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Scalar = str | int | float | bool
Value = Scalar | Sequence[Scalar]
Fields = Mapping[str, Value]
"""What filters look at: a card's filterable fields, as the store holds them."""

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]
Vectors = NDArray[np.float32]

DIGITS = 6
"""Decimals of every score and figure: they are rounded before they are ordered, stored or compared."""
EPSILON = 1e-9
"""Slack of every comparison with a limit: 0.94 - 0.96 < -0.02 is True in floating point."""

REFERENCE = "reference"
"""The lane that holds what the method would have ranked with exact search in place of its approximate index."""


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """One ranking: ids and their scores, best first, each id once."""

    ids: tuple[str, ...] = ()
    scores: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def ranked(cls, scores: Mapping[str, float]) -> Hits:
        """Ids by rounded score descending, then id ascending."""
        rounded = sorted((-round(score, DIGITS), name) for name, score in scores.items())
        return cls(tuple(name for _, name in rounded), np.array([-score for score, _ in rounded], dtype=float))

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, float]]) -> Hits:
        """(id, score) pairs as they come, ids that come twice included: `retrieval.lanes.fault` looks for these."""
        given = list(pairs)
        return cls(tuple(name for name, _ in given), np.array([score for _, score in given], dtype=float))

    def __len__(self) -> int:
        return len(self.ids)

    def pairs(self) -> Iterator[tuple[str, float]]:
        """(id, score) in rank order."""
        return zip(self.ids, self.scores.tolist(), strict=True)

    def head(self, count: int) -> Hits:
        """The first so many."""
        return self if count >= len(self.ids) else Hits(self.ids[:count], self.scores[:count])

    def only(self, names: frozenset[str] | set[str]) -> Hits:
        """The hits whose ids are among the names."""
        kept = [place for place, name in enumerate(self.ids) if name in names]
        return Hits(tuple(self.ids[place] for place in kept), self.scores[kept])

    def once(self) -> Hits:
        """Each id at its first place alone."""
        first = dict(zip(reversed(self.ids), range(len(self.ids) - 1, -1, -1), strict=True))
        kept = sorted(first.values())
        return self if len(kept) == len(self.ids) else Hits(tuple(self.ids[place] for place in kept), self.scores[kept])

    def rank(self, name: str) -> int | None:
        """The rank of an id, from 1; None where it was not found."""
        return self.ids.index(name) + 1 if name in self.ids else None

    def score(self, rank: int) -> float | None:
        """The score at a rank; None beyond the end."""
        return float(self.scores[rank - 1]) if 0 < rank <= len(self.ids) else None

    def at_least(self, score: float) -> frozenset[str]:
        """The ids whose score reaches a limit."""
        return frozenset(name for name, reached in self.pairs() if reached >= score)


NOTHING = Hits()
"""The ranking of a question that brought nothing back."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """Cards cut into chunks."""

    ids: tuple[str, ...]
    """`<card>::<nn>`."""
    cards: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    """The span of the card's text, end exclusive."""
    texts: tuple[str, ...]
    """What is embedded."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of an index, by id: a row is one distinct (embedded text, filterable fields)."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    languages: tuple[str, ...]
    fields: tuple[Fields, ...]
    """As the store holds them."""
    chunks: tuple[tuple[str, ...], ...]
    """Which chunks a row stands for."""
    cards: tuple[tuple[str, ...], ...]
    """Which cards a row stands for, each once, in the order of its chunks."""

    def __len__(self) -> int:
        return len(self.ids)

    def of_cards(self, wanted: frozenset[str] | set[str]) -> Mask:
        """Which rows stand for one of these cards."""
        return np.fromiter((not wanted.isdisjoint(cards) for cards in self.cards), bool, len(self.cards))

    def places(self, card: str) -> list[int]:
        """The places of a card's rows."""
        return [place for place, cards in enumerate(self.cards) if card in cards]


@dataclass(frozen=True, slots=True, order=True)
class Figure:
    """A metric at a cut-off, known everywhere by its text: `ndcg@10`, or `leakage` where it has none."""

    metric: str
    k: int | None = None

    def __str__(self) -> str:
        return self.metric if self.k is None else f"{self.metric}@{self.k}"

    @classmethod
    def parse(cls, text: str) -> Figure:
        """Read a figure's text back; raises ValueError where what follows the `@` is not a whole number above 0."""
        metric, at, cut = text.partition("@")
        if at and (not cut.isdecimal() or int(cut) < 1):
            raise ValueError(f"'{text}': a cut-off is a whole number above 0")
        return cls(metric, int(cut) if at else None)


@dataclass(frozen=True, slots=True, eq=False)
class LaneScores:
    """The figures of one lane: cases x figures. A figure that is not defined for a case is absent, never 0."""

    cases: tuple[str, ...]
    figures: tuple[Figure, ...]
    values: Floats
    """Six decimals; NaN where a figure is not defined."""
    defined: Mask

    @classmethod
    def of_rows(cls, figures: Sequence[Figure], rows: Mapping[str, Sequence[float | None]]) -> LaneScores:
        """From the values of each case, in the figures' order; None where one is not defined."""
        shape = (len(rows), len(figures))
        values = np.array([*rows.values()], dtype=float).reshape(shape)  # None becomes NaN
        defined = np.array([[value is not None for value in row] for row in rows.values()], dtype=bool).reshape(shape)
        return cls(tuple(rows), tuple(figures), values, defined)

    def __getitem__(self, figure: Figure) -> dict[str, float]:
        """One figure by case, where it is defined."""
        if figure not in self.figures:
            return {}
        place = self.figures.index(figure)
        numbers = np.flatnonzero(self.defined[:, place])
        return {self.cases[number]: float(self.values[number, place]) for number in numbers}

    def of_case(self, case: str) -> dict[Figure, float]:
        """One case's defined figures."""
        if case not in self.cases:
            return {}
        number = self.cases.index(case)
        return {self.figures[place]: float(self.values[number, place]) for place in np.flatnonzero(self.defined[number])}

    def not_finite(self) -> Iterator[tuple[str, Figure]]:
        """Cases and figures that are defined and no finite number."""
        for number, place in zip(*np.nonzero(self.defined & ~np.isfinite(self.values)), strict=True):
            yield self.cases[number], self.figures[place]


NO_SCORES = LaneScores((), (), np.empty((0, 0)), np.empty((0, 0), bool))
"""The scores of a lane that a run does not have."""
