"""How a rule that meets no card is told: values, the places they stand in, and what may be written instead."""

from __future__ import annotations

import json

from kbgate.tasks.domain import Card, Predicate
from kbgate.tasks.predicates import BUILT_IN_FIELDS, NUMBER, TEXT, TRUTH, Condition, asked_type, list_of
from kbgate.tasks.tables import Value

_DECLARED = {NUMBER: "number", TRUTH: "boolean"}
"""The types of [kb.types] by what they make of a text."""
_LONGEST = 60
"""Characters of a value that a sentence shows."""


def advice(condition: Condition, stored: str) -> str:
    """What may be written instead of a condition that the type of a field keeps from being compared."""
    name, op, wanted = condition[0], condition[1], _as_written(condition[2])
    asked, declare = asked_type(op, wanted), name not in BUILT_IN_FIELDS
    if stored == list_of(asked):
        values = wanted if isinstance(wanted, list | tuple) else [wanted]
        negated = {"$ne": "$not_contains", "$nin": "$not_contains"}.get(op, "$contains")
        parts: list[Predicate] = [{name: {negated: value}} for value in values]
        joined = parts[0] if len(parts) == 1 else {"$or" if negated == "$contains" else "$and": parts}
        return f"of a list ask {short(joined)}"
    if asked == list_of(stored):
        how = {name: wanted if op == "$contains" else {"$ne": wanted}}
        other = f', or declare [kb.types] {name} = "list" in suite.toml' if declare and stored == TEXT else ""
        return f"of one value ask {short(how)}{other}"
    if stored == TEXT and declare and asked in _DECLARED:
        return f'declare [kb.types] {name} = "{_DECLARED[asked]}" in suite.toml, or ask for text'
    return f"ask for {stored}"


def _as_written(value: Value) -> Value:
    """A value of a rule without what the store makes of it: 1, not 1.0."""
    if isinstance(value, list | tuple):
        return [_as_written(item) for item in value]  # type: ignore[misc]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def place_of(card: Card) -> str:
    """A card's id, and where it was read."""
    return f"'{card.id}', {card.file}:{card.line}" if card.file else f"'{card.id}'"


def short(value: object, longest: int = _LONGEST) -> str:
    """A value as JSON, its beginning where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= longest else f"{text[:longest]}..."
