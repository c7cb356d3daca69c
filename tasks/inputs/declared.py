"""Metadata as [kb.types] declares them: text formats know text alone, and no type is guessed.

A declared date is held as its instant, in seconds as the store has it, on cards and in rules alike. A value that is of its
type already stays as it is, so reading again what was written changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import JsonValue

from kbgate.tasks.clock import first_second, last_second
from kbgate.tasks.settings.sections import FieldType

Types = Mapping[str, FieldType]
T = TypeVar("T")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_ALLOWED = {
    "date": "a date such as 2026-05-31 or 2026-05-31T18:00:00+02:00",
    "number": "a number such as 2024 or -0.5",
    "boolean": "one of true, false, yes, no, 1 and 0",
    "list": "a list, or text with its items between semicolons",
}
_ENDS_OF_DAY = ("$gt", "$lte")
"""Operators for which a bare day is its last second: after it, and not later than it."""


def as_declared(metadata: Mapping[str, JsonValue], types: Types) -> tuple[dict[str, JsonValue], list[tuple[str, str]]]:
    """Metadata with every declared key of its type; blank text says nothing.

    Beside them a sentence for each key that is not as declared, and what was found there.
    """
    given, mistakes = dict(metadata), list[tuple[str, str]]()
    for name, declared in types.items():
        if name not in given:
            continue
        try:
            value = _typed(given.pop(name), declared)
        except ValueError as error:
            mistakes.append((f"metadata.{name}: [kb.types] says {declared}: write {_ALLOWED[declared]}", str(error)))
            continue
        if value is not None:
            given[name] = value
    return given, mistakes


def _typed(value: JsonValue, declared: FieldType) -> JsonValue:
    """A value, or each of a list, as declared; None for blank text. Raises ValueError, which shows it."""
    if declared == "list":
        items = value if isinstance(value, list) else value.split(";") if isinstance(value, str) else [value]
        return [item for item in (item.strip() if isinstance(item, str) else item for item in items) if item != ""]
    if isinstance(value, list):
        return [item for item in (_typed(item, declared) for item in value) if item is not None]
    if not isinstance(value, str):
        fits = (
            isinstance(value, bool) if declared == "boolean" else isinstance(value, int | float) and not isinstance(value, bool)
        )
        if not fits:
            raise ValueError(repr(value)[:80])
        return value
    text = value.strip()
    if not text:
        return None
    try:
        return _READ[declared](text)
    except (ValueError, KeyError, OverflowError):
        raise ValueError(repr(value)[:80]) from None


def _number(text: str) -> int | float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return int(text) if _WHOLE.fullmatch(text) else float(text)


_READ: Mapping[str, Callable[[str], JsonValue]] = {
    "date": first_second,
    "number": _number,
    "boolean": lambda text: _TRUTHS[text.casefold()],
}


def rule_as_declared(rule: T, types: Types) -> T:
    """A rule as it stands in a file, whatever it is, with the days and instants asked of declared dates as seconds.

    What is no date stays as it is: whoever checks the rule says so.
    """
    dates = {name for name, declared in types.items() if declared == "date"}
    return _dated(rule, dates) if dates else rule  # type: ignore[return-value]


def _dated(rule: object, dates: set[str]) -> object:
    if isinstance(rule, list):
        return [_dated(part, dates) for part in rule]
    if not isinstance(rule, dict):
        return rule
    return {
        key: _condition(value) if key in dates else _dated(value, dates) if key in ("$and", "$or") else value
        for key, value in rule.items()
    }


def _condition(condition: object) -> object:
    if isinstance(condition, dict):
        return {op: _instant(wanted, last_second if op in _ENDS_OF_DAY else first_second) for op, wanted in condition.items()}
    return _instant(condition, first_second)


def _instant(wanted: object, second: Callable[[str], int]) -> object:
    if isinstance(wanted, list):
        return [_instant(item, second) for item in wanted]
    try:
        return second(wanted) if isinstance(wanted, str) else wanted
    except (ValueError, OverflowError):
        return wanted
