"""One grammar for filters and access (Chroma's `where`), one evaluator of ours, and the translation into the store's values.

A predicate is `{field: value}`, `{field: {operator: value}}`, `{"$and": [..]}` or `{"$or": [..]}`. A card without the field
fails every operator except `$ne`, `$nin` and `$not_contains`; lists answer `$contains` and `$not_contains` only, as in the
store. Dates are ISO text in files and seconds in the store (see `clock`), which refuses `$gt` on text; a bare day is the first
second of it for `valid_from`, the last one for `valid_until`, on a card and in a predicate. Other numbers are stored and asked
as floats: the store cuts the operand to a whole number where the field holds one, so that 2 passes for `$gte` 2.5.
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeGuard

from kbgate.tasks.clock import EARLIEST, LATEST, first_second, last_second, seconds_of
from kbgate.tasks.domain import Card, Cards, Predicate
from kbgate.tasks.errors import did_you_mean
from kbgate.tasks.tables import Fields, Scalar, Value

BUILT_IN_FIELDS = ("language", "tier", "domain", "topics", "valid_from", "valid_until")
"""A card's own fields that filters may use; the keys of its metadata stand on the same level."""
DATES: dict[str, Callable[[str], int]] = {"valid_from": first_second, "valid_until": last_second}
"""Fields that hold dates, and the second that a text in one of them stands for."""
STARTS, ENDS = "_starts", "_ends"
"""What validity is judged by in the store: open ends are filled, so that a card without dates is always valid."""

LARGEST = 2**53
"""Beyond, two whole numbers can be one float."""
_ORDER: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_LISTS = ("$contains", "$not_contains")
_OPERATORS = ("$eq", "$ne", "$in", "$nin", *_ORDER, *_LISTS)
_NEGATIVE = ("$ne", "$nin", "$not_contains")


def store_fields(card: Card, filterable: Collection[str]) -> dict[str, Value]:
    """The filterable fields of a card as the store holds them: present values only, dates as seconds."""
    dates: dict[str, Value] = {name: second(getattr(card, name)) for name, second in DATES.items() if getattr(card, name)}
    words: dict[str, Value] = {"language": card.language, "tier": card.tier, "domain": card.domain, "topics": list(card.topics)}
    fields = {name: value for name, value in words.items() if value}
    fields |= {name: _stored(card.metadata[name]) for name in sorted(filterable) if name in card.metadata}
    return {**fields, **dates, STARTS: dates.get("valid_from", EARLIEST), ENDS: dates.get("valid_until", LATEST)}


def _stored(value: Value) -> Value:
    """A value as the store holds it."""
    if _is_list(value):
        return [_stored_scalar(item) for item in value]
    return _stored_scalar(value)  # type: ignore[arg-type]


def _stored_scalar(value: Scalar) -> Scalar:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_list(value: object) -> TypeGuard[list[Scalar] | tuple[Scalar, ...]]:
    """Whether a value is a list of values; a text is a sequence too, and is one value."""
    return isinstance(value, list | tuple)


def valid_at(as_of: dt.datetime) -> Predicate:
    """The predicate of the cards that are valid at an instant."""
    second = seconds_of(as_of)
    return {"$and": [{STARTS: {"$lte": second}}, {ENDS: {"$gte": second}}]}


def is_early(card: Card, as_of: dt.datetime) -> bool:
    """Whether a card is not valid yet."""
    return bool(card.valid_from) and seconds_of(as_of) < first_second(card.valid_from)


def is_over(card: Card, as_of: dt.datetime) -> bool:
    """Whether a card is expired."""
    return bool(card.valid_until) and last_second(card.valid_until) < seconds_of(as_of)


def valid_cards(cards: Cards, as_of: dt.datetime) -> frozenset[str]:
    """The ids of the cards that are valid at an instant."""
    return frozenset(name for name, card in cards.items() if not (is_early(card, as_of) or is_over(card, as_of)))


def both(*predicates: Predicate | None) -> Predicate:
    """The conjunction of the predicates that are there; at least one must be."""
    given = [predicate for predicate in predicates if predicate is not None]
    return given[0] if len(given) == 1 else {"$and": given}


def condition_of(condition: Scalar | Mapping[str, Value]) -> tuple[str, Value]:
    """The operator and the operand of a field's condition; a bare value is asked for as it is."""
    if isinstance(condition, Mapping):
        return next(iter(condition.items()))
    return "$eq", condition


def parts_of(predicate: Predicate) -> tuple[str, Sequence[Predicate]]:
    """`$and` or `$or` and what it joins; "" and nothing for a predicate on one field."""
    ((key, condition),) = predicate.items()
    if key in ("$and", "$or") and isinstance(condition, Sequence) and not isinstance(condition, str):
        return key, condition
    return "", ()


Condition = tuple[str, str, Value]
"""One field, one operator, and what it asks for."""


def conditions_of(predicate: Predicate) -> Iterator[Condition]:
    """Every condition of a predicate on one field, however they are joined."""
    joined, parts = parts_of(predicate)
    for part in parts:
        yield from conditions_of(part)
    if not joined:
        ((field, condition),) = predicate.items()
        yield field, *condition_of(condition)  # type: ignore[arg-type]


def matches(predicate: Predicate, fields: Fields) -> bool:
    """Whether a card's stored fields satisfy a predicate written in the store's values."""
    joined, parts = parts_of(predicate)
    if joined == "$and":
        return all(matches(part, fields) for part in parts)
    if joined == "$or":
        return any(matches(part, fields) for part in parts)
    ((key, condition),) = predicate.items()
    op, wanted = condition_of(condition)  # type: ignore[arg-type]
    if op in _NEGATIVE:
        opposite = {"$ne": "$eq", "$nin": "$in", "$not_contains": "$contains"}[op]
        return not (key in fields and _holds(opposite, fields[key], wanted))
    return key in fields and _holds(op, fields[key], wanted)


def _holds(op: str, value: Value, wanted: Value) -> bool:
    if op == "$contains":
        return _is_list(value) and any(_equal(item, wanted) for item in value)
    if _is_list(value):
        return False
    if op == "$eq":
        return _equal(value, wanted)
    if op == "$in":
        return _is_list(wanted) and any(_equal(value, item) for item in wanted)
    return _is_number(value) and _is_number(wanted) and _ORDER[op](value, wanted)


def _equal(value: Value, wanted: Value) -> bool:
    """Equality as the store has it: True is not 1, text is no number, 3 is 3.0."""
    if _is_number(value) and _is_number(wanted):
        return value == wanted
    return type(value) is type(wanted) and value == wanted


TEXT, NUMBER, TRUTH = "text", "a number", "true/false"
"""The types of values, as they are told."""


def type_of(value: Value) -> str:
    """What type and shape a value is of, as the store tells them apart."""
    if _is_list(value):
        return list_of(type_of(value[0]) if value else TEXT)
    return TEXT if isinstance(value, str) else TRUTH if isinstance(value, bool) else NUMBER


def list_of(item: str) -> str:
    """The type of a list whose items are of one."""
    return f"a list of {'numbers' if item == NUMBER else item}"


def asked_type(op: str, wanted: Value) -> str:
    """What type and shape a field must be of for an operator to compare it with what it asks for."""
    if op in _LISTS:
        return list_of(type_of(wanted))
    return type_of(wanted[0] if _is_list(wanted) else wanted)  # $in and $nin list values of one type


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


_DEEPEST, _MOST_VALUES = 20, 1000


def mistakes(predicate: object, known: Collection[str], *, access: bool = False, depth: int = 0) -> Iterator[str]:
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


def _condition_mistakes(key: str, condition: object, access: bool) -> Iterator[str]:
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
            example = '"2026-05-31" or "2026-05-31T18:00:00+02:00"'
            yield f"'{key}' is compared with ISO dates such as {example}, found {wanted!r}"
    elif op in _ORDER and not _is_number(wanted):
        yield f"{op} on '{key}' compares numbers, found {wanted!r}"
    elif key == "topics" and op not in _LISTS:
        yield f"'topics' is a list: use $contains, found {op}"


def _is_date(value: object) -> bool:
    try:
        dt.datetime.fromisoformat(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def in_store_values(predicate: Predicate) -> Predicate:
    """A checked predicate from a file with its dates as seconds, ready for the store and for `matches`."""
    joined, parts = parts_of(predicate)
    if joined:
        return {joined: [in_store_values(part) for part in parts]}
    ((key, condition),) = predicate.items()
    turn = partial(_seconds, DATES[key]) if key in DATES else _stored
    if isinstance(condition, Mapping):
        return {key: {op: turn(wanted) for op, wanted in condition.items()}}
    return {key: turn(condition)}  # type: ignore[arg-type, dict-item]


def _seconds(second: Callable[[str], int], value: Value) -> Value:
    """Dates written in ISO form as seconds."""
    return [second(str(date)) for date in value] if _is_list(value) else second(str(value))
