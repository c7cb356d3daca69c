"""Our evaluator against the real store: the same predicate selects the same cards in both."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from hypothesis import given, settings
from hypothesis import strategies as st

from kbgate.tasks.domain import Card
from kbgate.tasks.predicates import (
    BUILT_IN_FIELDS,
    LARGEST,
    both,
    in_store_values,
    is_early,
    is_over,
    matches,
    mistakes,
    store_fields,
    valid_at,
)

FILTERABLE = ("group", "level", "score", "flag", "tags")
KNOWN = (*BUILT_IN_FIELDS, *FILTERABLE)


def card(**fields: Any) -> Card:
    return Card("c", "", "", **fields)


CARDS = [
    card(),
    card(language="en", tier="gold", topics=("a", "b"), metadata={"group": "x", "level": 1, "flag": True}),
    card(language="es", topics=("b",), metadata={"group": "y", "level": 2, "score": 1.0, "tags": ["t", "u"]}),
    card(domain="d", valid_from="2026-01-01", valid_until="2026-06-30", metadata={"score": 2.5, "flag": False}),
    card(language="en", valid_until="2025-12-31", metadata={"group": "x", "level": 3, "tags": ["t"]}),
    card(language="pt", valid_from="2026-03-01", metadata={"level": 1, "score": -1.0}),
    card(language="pt", valid_from="2026-03-01T09:30:00+02:00", valid_until="2026-06-30T18:00:00-05:00"),
    card(valid_from="2026-03-01T07:30:00", valid_until="20260630T23:00:00.5Z", metadata={"level": 2}),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("store")
    client = chromadb.PersistentClient(path=str(folder), settings=Settings(anonymized_telemetry=False))
    collection = client.create_collection("cards", embedding_function=None)
    collection.add(
        ids=[str(n) for n in range(len(CARDS))],
        embeddings=np.eye(len(CARDS), dtype=np.float32),
        metadatas=[store_fields(c, FILTERABLE) for c in CARDS],
    )
    yield collection
    client.close()


def conditions() -> st.SearchStrategy[dict[str, Any]]:
    text = st.sampled_from(["en", "es", "x", "y", "gold", "a", "b", "t", "zz"])
    number: st.SearchStrategy[Any] = st.one_of(st.integers(-2, 4), st.sampled_from([1.0, 2.5, -1.0]))
    listed = st.sampled_from(["$contains", "$not_contains"])
    day = st.sampled_from(
        [
            "2025-12-31",
            "2026-01-01",
            "2026-03-01",
            "2026-06-30",
            "2026-03-01T07:30:00Z",
            "2026-06-30T23:00:00",
            "20260630T19-04",
        ]
    )
    field = st.sampled_from(["language", "tier", "domain", "group"])
    comparison = st.sampled_from(["$gt", "$gte", "$lt", "$lte"])
    dated = st.sampled_from(["valid_from", "valid_until"])
    return st.one_of(
        st.builds(lambda f, op, v: {f: {op: v}}, field, st.sampled_from(["$eq", "$ne"]), text),
        st.builds(lambda f, v: {f: v}, field, text),
        st.builds(lambda f, op, v: {f: {op: v}}, field, st.sampled_from(["$in", "$nin"]), st.lists(text, min_size=1)),
        st.builds(lambda f, op, v: {f: {op: v}}, st.sampled_from(["level", "score"]), comparison, number),
        st.builds(lambda f, v: {f: v}, st.sampled_from(["level", "score"]), number),
        st.builds(lambda v: {"flag": v}, st.booleans()),
        st.builds(lambda f, op, v: {f: {op: v}}, st.sampled_from(["topics", "tags"]), listed, text),
        st.builds(lambda f, op, v: {f: {op: v}}, dated, st.one_of(comparison, st.sampled_from(["$eq", "$ne"])), day),
        st.builds(lambda f, op, v: {f: {op: v}}, dated, st.sampled_from(["$in", "$nin"]), st.lists(day, min_size=1)),
    )  # fmt: skip


def instants() -> st.SearchStrategy[str]:
    """Moments with an offset, to the ends of the calendar."""
    offset = st.integers(-14 * 60, 14 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
    return st.datetimes(timezones=offset).map(dt.datetime.isoformat)


def predicates() -> st.SearchStrategy[dict[str, Any]]:
    def extend(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        parts = st.lists(inner, min_size=2, max_size=3)
        return st.builds(lambda op, p: {op: p}, st.sampled_from(["$and", "$or"]), parts)

    return st.recursive(conditions(), extend, max_leaves=5)


@given(written=predicates())
@settings(max_examples=300)
def test_our_evaluator_agrees_with_the_store(written: dict[str, Any], store: Any) -> None:
    assert list(mistakes(written, KNOWN)) == []
    predicate = in_store_values(written)
    ours = {str(n) for n, c in enumerate(CARDS) if matches(predicate, store_fields(c, FILTERABLE))}
    assert set(store.get(where=predicate)["ids"]) == ours


@pytest.mark.parametrize(
    ("moment", "valid"),
    [
        ("2025-12-31T00:00:00", "0124"), ("2025-12-31T23:59:59", "0124"), ("2026-01-01T00:00:00", "0123"),
        ("2026-03-01T00:00:00", "01235"), ("2026-03-01T07:29:59", "01235"), ("2026-03-01T07:30:00", "0123567"),
        ("2026-06-30T23:00:00", "0123567"), ("2026-06-30T23:00:01", "01235"), ("2026-06-30T23:59:59", "01235"),
        ("2026-07-01T00:00:00", "0125"),
    ],
)  # fmt: skip
def test_validity_has_closed_ends_to_the_second_and_open_ones_where_nothing_is_said(
    moment: str, valid: str, store: Any
) -> None:
    as_of = dt.datetime.fromisoformat(moment).replace(tzinfo=dt.UTC)
    where = valid_at(as_of)
    assert set(store.get(where=where)["ids"]) == set(valid)
    assert {str(n) for n, c in enumerate(CARDS) if matches(where, store_fields(c, ()))} == set(valid)
    assert {str(n) for n, c in enumerate(CARDS) if not (is_early(c, as_of) or is_over(c, as_of))} == set(valid)


@given(
    dates=st.tuples(*[st.one_of(st.just(""), st.dates().map(dt.date.isoformat), instants())] * 2),
    as_of=st.datetimes(timezones=st.just(dt.UTC)),
)
def test_a_card_is_early_valid_or_over_at_every_moment(dates: tuple[str, str], as_of: dt.datetime) -> None:
    one = card(valid_from=dates[0], valid_until=dates[1])
    holds = matches(valid_at(as_of), store_fields(one, ()))
    assert holds == (not is_early(one, as_of) and not is_over(one, as_of))
    assert all(-LARGEST < second < LARGEST for second in store_fields(one, ()).values() if isinstance(second, int))


def test_a_missing_field_fails_every_operator_but_the_negative_ones() -> None:
    fields = store_fields(card(), FILTERABLE)
    for operator in ("$eq", "$gt", "$lte", "$contains"):
        assert not matches({"level": {operator: 1}}, fields)
    assert matches({"level": {"$ne": 1}}, fields)
    assert matches({"level": {"$nin": [1]}}, fields)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({}, "needs one key"),
        ({"tier": "gold", "language": "en"}, "join several"),
        ({"$and": [{"tier": "gold"}]}, "at least two"),
        ({"tire": "gold"}, "unknown field 'tire'; did you mean 'tier'?"),
        ({"tier": {"$equals": "gold"}}, "unknown operator '$equals'"),
        ({"tier": {"$eq": "gold", "$ne": "x"}}, "needs one operator, found 2"),
        ({"tier": {"$in": []}}, "at least one value"),
        ({"tier": {"$in": ["a", 1]}}, "of one kind"),
        ({"tier": {"$gt": "a"}}, "compares numbers"),
        ({"valid_from": {"$gt": "yesterday"}}, "ISO dates"),
        ({"topics": "a"}, "use $contains"),
        ({"tier": None}, "takes text, numbers"),
        ({"level": 10**400}, "up to 2**53"),
        ({"group": {"$in": ["x"] * 1001}}, "lists 1001 values; 1000 are allowed"),
    ],
)
def test_a_mistake_is_a_sentence(written: dict[str, Any], said: str) -> None:
    assert said in " ".join(mistakes(written, KNOWN))


def test_a_predicate_nested_without_end_is_a_sentence() -> None:
    nested: dict[str, Any] = {"tier": "gold"}
    for _ in range(400):
        nested = {"$and": [nested, {"tier": "gold"}]}
    assert "is nested more than 20 deep" in " ".join(mistakes(nested, KNOWN))


@pytest.mark.parametrize(("count", "told"), [(1000, []), (1001, ["$in on 'tier' lists 1001 values; 1000 are allowed"])])
def test_a_list_holds_a_thousand_values(count: int, told: list[str]) -> None:
    assert list(mistakes({"tier": {"$in": [f"t{n}" for n in range(count)]}}, KNOWN)) == told


def test_access_predicates_name_who_may_see() -> None:
    assert list(mistakes({"group": {"$ne": "x"}}, KNOWN)) == []
    assert "lets cards without the field through" in next(iter(mistakes({"group": {"$ne": "x"}}, KNOWN, access=True)))
    nested = {"$or": [{"group": "x"}, {"group": {"$nin": ["y"]}}]}
    assert len(list(mistakes(nested, KNOWN, access=True))) == 1


def test_both_joins_what_is_there() -> None:
    assert both(None, {"a": 1}) == {"a": 1}
    assert both({"a": 1}, None, {"b": 2}) == {"$and": [{"a": 1}, {"b": 2}]}
