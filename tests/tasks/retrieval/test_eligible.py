"""Masks say what the one evaluator says, row by row, and look at each distinct value once."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kbgate.tasks.domain import Predicate
from kbgate.tasks.predicates import matches
from kbgate.tasks.retrieval import eligible as module
from kbgate.tasks.retrieval.eligible import Eligible, eligible_of
from kbgate.tasks.tables import Fields, Rows, Value

VALUES: list[Value] = ["a", "b", "1", 1, 1.0, 2.5, 0, True, False, ["a", "b"], [1, 2.5], [True]]


def rows_of(fields: list[Fields]) -> Rows:
    names = tuple(f"r{n:03d}" for n in range(len(fields)))
    cards = tuple((f"c{n % 40}", f"c{n % 7}") if n % 3 else (f"c{n % 40}",) for n in range(len(fields)))
    return Rows(names, names, ("",) * len(names), tuple(fields), tuple((name,) for name in names), cards)


def some_rows(seed: int) -> Rows:
    pick = random.Random(seed)
    return rows_of([{name: pick.choice(VALUES) for name in "xyz" if pick.random() < 0.8} for _ in range(120)])


def some_predicate(pick: random.Random, depth: int = 0) -> Predicate:
    if depth < 2 and pick.random() < 0.4:
        return {pick.choice(["$and", "$or"]): [some_predicate(pick, depth + 1) for _ in range(pick.randint(2, 3))]}
    op = pick.choice(["", "$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte", "$contains", "$not_contains"])
    scalars = [value for value in VALUES if not isinstance(value, list)]
    wanted = pick.choice(scalars)
    if op in ("$in", "$nin"):
        return {pick.choice("xyzw"): {op: [wanted]}}
    return {pick.choice("xyzw"): {op: wanted} if op else wanted}  # type: ignore[dict-item]


@pytest.mark.parametrize("seed", range(6))
def test_masks_are_what_the_evaluator_says_of_each_row(seed: int) -> None:
    rows, pick = some_rows(seed), random.Random(seed)
    eligible = Eligible(rows)
    for _ in range(60):
        where = some_predicate(pick)
        row_by_row = [matches(where, fields) for fields in rows.fields]
        assert eligible.rows(where).tolist() == row_by_row, where
        found = {card for cards, holds in zip(rows.cards, row_by_row, strict=True) if holds for card in cards}
        assert eligible.cards(where) == len(found)


def test_no_predicate_lets_everything_through() -> None:
    rows = some_rows(0)
    assert Eligible(rows).rows({}).all()
    assert Eligible(rows).cards({}) == len({card for cards in rows.cards for card in cards})


def test_no_rows_are_no_trouble() -> None:
    eligible = Eligible(rows_of([]))
    assert (eligible.rows({"x": 1}).shape, eligible.cards({"x": 1}), eligible.cards({})) == ((0,), 0, 0)


def test_a_predicate_is_evaluated_once_for_all_lanes_and_once_a_distinct_value(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of([{"x": n % 5} for n in range(1000)])
    asked = []

    def counting(where: Predicate, fields: Fields) -> bool:
        asked.append(fields)
        return matches(where, fields)

    monkeypatch.setattr(module, "matches", counting)
    for _ in range(3):
        mask = eligible_of(rows).rows({"x": {"$gte": 3}})
        assert np.count_nonzero(mask) == 400
    assert len(asked) == 5
