"""One grammar for filters and access (Chroma's `where`), one evaluator of ours, and the translation into the store's values.

A predicate is `{field: value}`, `{field: {operator: value}}`, `{"$and": [..]}` or `{"$or": [..]}`. A card without the field
fails every operator except `$ne`, `$nin` and `$not_contains`; lists answer `$contains` and `$not_contains` only, as in the
store. Dates are ISO text in files and whole days in the store, which refuses `$gt` on text. Other numbers are stored and
asked as floats: the store cuts the operand to a whole number where the field holds one, so that 2 passes for `$gte` 2.5.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from kbgate.tasks.errors import did_you_mean

Predicate = Mapping[str, Any]
Fields = Mapping[str, Any]

BUILT_IN_FIELDS = ("language", "tier", "domain", "topics", "valid_from", "valid_until")
"""A card's own fields that filters may use; the keys of its metadata stand on the same level."""
DATES = ("valid_from", "valid_until")
STARTS, ENDS = "_starts", "_ends"
"""What validity is judged by in the store: open ends are filled, so that a card without dates is always valid."""

LARGEST = 2**53
"""Beyond, two whole numbers can be one float."""
_ORDER = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
_LISTS = ("$contains", "$not_contains")
_OPERATORS = ("$eq", "$ne", "$in", "$nin", *_ORDER, *_LISTS)
_NEGATIVE = ("$ne", "$nin", "$not_contains")


def store_fields(card: Fields, filterable: Collection[str]) -> dict[str, Any]:
    """The filterable fields of a card as the store holds them: present values only, dates as days."""
    start, end = card["valid_from"], card["valid_until"]
    fields = {name: card[name] for name in ("language", "tier", "domain", "topics") if card[name]}
    fields |= {name: _stored(card["metadata"][name]) for name in sorted(filterable) if name in card["metadata"]}
    fields |= {name: day.toordinal() for name, day in (("valid_from", start), ("valid_until", end)) if day}
    return {**fields, STARTS: (start or dt.date.min).toordinal(), ENDS: (end or dt.date.max).toordinal()}


def _stored(value: Any) -> Any:
    """A value as the store holds it."""
    if isinstance(value, list):
        return [_stored(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def valid_on(day: dt.date) -> dict[str, Any]:
    """The predicate of the cards that are valid on a day."""
    return {"$and": [{STARTS: {"$lte": day.toordinal()}}, {ENDS: {"$gte": day.toordinal()}}]}


def both(*predicates: Predicate | None) -> dict[str, Any]:
    """The conjunction of the predicates that are there; at least one must be."""
    given = [dict(p) for p in predicates if p is not None]
    return given[0] if len(given) == 1 else {"$and": given}


def matches(predicate: Predicate, fields: Fields) -> bool:
    """Whether a card's stored fields satisfy a predicate written in the store's values."""
    ((key, condition),) = predicate.items()
    if key == "$and":
        return all(matches(part, fields) for part in condition)
    if key == "$or":
        return any(matches(part, fields) for part in condition)
    op, wanted = next(iter(condition.items())) if isinstance(condition, Mapping) else ("$eq", condition)
    if op in _NEGATIVE:
        opposite = {"$ne": "$eq", "$nin": "$in", "$not_contains": "$contains"}[op]
        return not (key in fields and _holds(opposite, fields[key], wanted))
    return key in fields and _holds(op, fields[key], wanted)


def _holds(op: str, value: Any, wanted: Any) -> bool:
    if op == "$contains":
        return isinstance(value, list) and any(_equal(item, wanted) for item in value)
    if isinstance(value, list):
        return False
    if op == "$eq":
        return _equal(value, wanted)
    if op == "$in":
        return any(_equal(value, item) for item in wanted)
    return _is_number(value) and bool(_ORDER[op](value, wanted))


def _equal(value: Any, wanted: Any) -> bool:
    """Equality as the store has it: True is not 1, text is no number, 3 is 3.0."""
    if _is_number(value) and _is_number(wanted):
        return bool(value == wanted)
    return type(value) is type(wanted) and bool(value == wanted)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_DEEPEST, _MOST_VALUES = 20, 1000


def mistakes(predicate: Any, known: Collection[str], *, access: bool = False, depth: int = 0) -> Iterator[str]:
    """What is wrong with a predicate from a file, a sentence each; `access` predicates may not use `$ne` and its kin."""
    if depth > _DEEPEST:
        yield f"is nested more than {_DEEPEST} deep"
        return
    if not isinstance(predicate, dict) or len(predicate) != 1:
        yield 'needs one key: {"field": value}; join several with {"$and": [..]}'
        return
    ((key, condition),) = predicate.items()
    if key in ("$and", "$or"):
        if not isinstance(condition, list) or len(condition) < 2:
            yield f"{key} needs a list of at least two predicates"
            return
        for part in condition:
            yield from mistakes(part, known, access=access, depth=depth + 1)
    elif key not in known:
        yield f"unknown field '{key}'; {did_you_mean(key, known)} (metadata keys must stand in kb.filterable)"
    else:
        yield from _condition_mistakes(key, condition, access)


def _condition_mistakes(key: str, condition: Any, access: bool) -> Iterator[str]:
    if isinstance(condition, dict) and len(condition) != 1:
        yield f"'{key}' needs one operator, found {len(condition)}"
        return
    op, wanted = next(iter(condition.items())) if isinstance(condition, dict) else ("$eq", condition)
    if op not in _OPERATORS:
        yield f"unknown operator '{op}' on '{key}'; {did_you_mean(str(op), _OPERATORS)}"
        return
    if access and op in _NEGATIVE:
        yield f"{op} on '{key}' lets cards without the field through: an access predicate names who may see"
    values = wanted if op in ("$in", "$nin") else [wanted]
    if not isinstance(values, list) or not values:
        yield f"{op} on '{key}' needs a list with at least one value"
    elif len(values) > _MOST_VALUES:
        yield f"{op} on '{key}' lists {len(values)} values; {_MOST_VALUES} are allowed"
    elif any(_is_number(v) and abs(v) > LARGEST for v in values):
        yield f"{op} on '{key}' takes numbers up to 2**53, which can be compared exactly"
    elif not all(isinstance(v, str | int | float | bool) for v in values) or len({type(v) for v in values}) > 1:
        yield f"{op} on '{key}' takes text, numbers or true/false, of one kind, found {wanted!r}"
    elif key in DATES:
        if op in _LISTS or not all(_is_date(v) for v in values):
            yield f"'{key}' is compared with ISO dates such as \"2026-05-31\", found {wanted!r}"
    elif op in _ORDER and not _is_number(wanted):
        yield f"{op} on '{key}' compares numbers, found {wanted!r}"
    elif key == "topics" and op not in _LISTS:
        yield f"'topics' is a list: use $contains, found {op}"


def _is_date(value: Any) -> bool:
    try:
        dt.date.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


def in_store_values(predicate: Predicate) -> dict[str, Any]:
    """A checked predicate from a file with its dates as days, ready for the store and for `matches`."""
    ((key, condition),) = predicate.items()
    if key in ("$and", "$or"):
        return {key: [in_store_values(part) for part in condition]}
    if key not in DATES:
        if isinstance(condition, Mapping):
            return {key: {op: _stored(wanted) for op, wanted in condition.items()}}
        return {key: _stored(condition)}
    op, wanted = next(iter(condition.items())) if isinstance(condition, Mapping) else ("$eq", condition)
    if isinstance(wanted, list):
        return {key: {op: [dt.date.fromisoformat(day).toordinal() for day in wanted]}}
    return {key: {op: dt.date.fromisoformat(wanted).toordinal()}}
