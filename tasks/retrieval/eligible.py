"""Which rows and cards satisfy a predicate: NumPy masks, each distinct predicate evaluated once for one set of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np

from kbgate.tasks.domain import Predicate
from kbgate.tasks.predicates import condition_of, matches, parts_of
from kbgate.tasks.records import canonical
from kbgate.tasks.tables import Fields, Mask, Numbers, Rows, Value

_Key = tuple[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """One field of all rows: a few distinct values, and which of them each row has."""

    values: tuple[Fields, ...]
    """A card's fields with this one alone, or without it, for each distinct value."""
    codes: Numbers
    places: Mapping[_Key, int]


class Eligible:
    """Which rows and how many cards satisfy a predicate, by our own evaluator, each predicate evaluated once."""

    def __init__(self, rows: Rows):
        self._rows = rows
        self._columns: dict[str, _Column] = {}
        self._known: dict[str, tuple[Mask, int]] = {}
        places = {card: place for place, card in enumerate({card for of_row in rows.cards for card in of_row})}
        self._cards = np.fromiter((places[card] for of_row in rows.cards for card in of_row), np.int64)
        self._row_of = np.repeat(np.arange(len(rows)), [len(of_row) for of_row in rows.cards])
        self._count = len(places)

    def rows(self, where: Predicate) -> Mask:
        """A boolean per row of the index."""
        return self._look(where)[0]

    def cards(self, where: Predicate) -> int:
        """The number of cards that could be found."""
        return self._look(where)[1]

    def _look(self, where: Predicate) -> tuple[Mask, int]:
        key = canonical(where)
        if key not in self._known:
            mask = self._mask(where) if where else np.ones(len(self._rows), bool)
            found = np.zeros(self._count, bool)
            found[self._cards[mask[self._row_of]]] = True
            self._known[key] = (mask, int(found.sum()))
        return self._known[key]

    def _mask(self, where: Predicate) -> Mask:
        joined, parts = parts_of(where)
        if joined:
            return reduce(np.logical_and if joined == "$and" else np.logical_or, [self._mask(part) for part in parts])
        column = self._column(next(iter(where)))
        return _truth(where, column)[column.codes]

    def _column(self, name: str) -> _Column:
        if name not in self._columns:
            places: dict[_Key, int] = {}
            values: list[Fields] = []
            codes = np.empty(len(self._rows), np.int32)
            for row, fields in enumerate(self._rows.fields):
                key = _key(fields[name]) if name in fields else ("", None)
                if key not in places:
                    places[key] = len(values)
                    values.append({name: fields[name]} if name in fields else {})
                codes[row] = places[key]
            self._columns[name] = _Column(tuple(values), codes, places)
        return self._columns[name]


def _truth(where: Predicate, column: _Column) -> Mask:
    """Whether each distinct value of a column satisfies a predicate on it."""
    op, wanted = condition_of(next(iter(where.values())))  # type: ignore[arg-type]
    if op == "$eq" and isinstance(wanted, str | int | float):
        truth = np.zeros(len(column.values), bool)
        truth[[place for place in [column.places.get(_key(wanted))] if place is not None]] = True
        return truth
    return np.fromiter((matches(where, fields) for fields in column.values), bool, len(column.values))


def _key(value: Value) -> _Key:
    """What tells a value apart as the store does: True is not 1, and 3 is 3.0."""
    if isinstance(value, str):
        return "text", value
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, int | float):
        return "number", value
    return "list", tuple(_key(item) for item in value)


@lru_cache(maxsize=1)
def eligible_of(rows: Rows) -> Eligible:
    """The one evaluator of a set of rows: every lane of a run asks it, and no predicate is evaluated twice."""
    return Eligible(rows)
