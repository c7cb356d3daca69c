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

from kbgate.tasks.clock import midnight
from kbgate.tasks.domain import Card
from kbgate.tasks.predicates import BUILT_IN_FIELDS, both, in_store_values, matches, mistakes, store_fields, valid_at

FILTERABLE = ("group", "level", "score", "flag", "tags")
KNOWN = (*BUILT_IN_FIELDS, *FILTERABLE)


def card(**fields: Any) -> Card:
    return Card("c", "", "", **fields)


CARDS = [
    card(),
    card(language="en", tier="gold", topics=("a", "b"), metadata={"group": "x", "level": 1, "flag": True}),
    card(language="es", topics=("b",), metadata={"group": "y", "level": 2, "score": 1.0, "tags": ["t", "u"]}),
    card(domain="d", valid_from=dt.date(2026, 1, 1), valid_until=dt.date(2026, 6, 30), metadata={"score": 2.5, "flag": False}),
    card(language="en", valid_until=dt.date(2025, 12, 31), metadata={"group": "x", "level": 3, "tags": ["t"]}),
    card(language="pt", valid_from=dt.date(2026, 3, 1), metadata={"level": 1, "score": -1.0}),
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
    day = st.sampled_from(["2025-12-31", "2026-01-01", "2026-03-01", "2026-06-30"])
    field = st.sampled_from(["language", "tier", "domain", "group"])
    comparison = st.sampled_from(["$gt", "$gte", "$lt", "$lte"])
    return st.one_of(
        st.builds(lambda f, op, v: {f: {op: v}}, field, st.sampled_from(["$eq", "$ne"]), text),
        st.builds(lambda f, v: {f: v}, field, text),
        st.builds(lambda f, op, v: {f: {op: v}}, field, st.sampled_from(["$in", "$nin"]), st.lists(text, min_size=1)),
        st.builds(lambda f, op, v: {f: {op: v}}, st.sampled_from(["level", "score"]), comparison, number),
        st.builds(lambda f, v: {f: v}, st.sampled_from(["level", "score"]), number),
        st.builds(lambda v: {"flag": v}, st.booleans()),
        st.builds(lambda f, op, v: {f: {op: v}}, st.sampled_from(["topics", "tags"]), listed, text),
        st.builds(lambda f, op, v: {f: {op: v}}, st.sampled_from(["valid_from", "valid_until"]), comparison, day),
    )  # fmt: skip


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
    ("day", "valid"), [("2025-12-31", "01245"), ("2026-01-01", "0123"), ("2026-06-30", "01235"), ("2026-07-01", "0125")]
)
def test_validity_has_closed_ends_and_open_where_nothing_is_said(day: str, valid: str, store: Any) -> None:
    where = valid_at(midnight(dt.date.fromisoformat(day)))
    found = set(store.get(where=where)["ids"])
    assert found == {str(n) for n, c in enumerate(CARDS) if matches(where, store_fields(c, ()))}
    # "5" begins on 2026-03-01 and "4" ended on 2025-12-31.
    expected = set(valid) - ({"5"} if day < "2026-03-01" else set()) - ({"4"} if day > "2025-12-31" else set())
    assert found == expected


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


def test_access_predicates_name_who_may_see() -> None:
    assert list(mistakes({"group": {"$ne": "x"}}, KNOWN)) == []
    assert "lets cards without the field through" in next(iter(mistakes({"group": {"$ne": "x"}}, KNOWN, access=True)))
    nested = {"$or": [{"group": "x"}, {"group": {"$nin": ["y"]}}]}
    assert len(list(mistakes(nested, KNOWN, access=True))) == 1


def test_both_joins_what_is_there() -> None:
    assert both(None, {"a": 1}) == {"a": 1}
    assert both({"a": 1}, None, {"b": 2}) == {"$and": [{"a": 1}, {"b": 2}]}
