"""The knowledge base: every record of its files held against what a card is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, field_validator

from kbgate.tasks.characters import as_seen, is_blank
from kbgate.tasks.clock import first_second, last_second
from kbgate.tasks.domain import Card, KnowledgeBase
from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.inputs.declared import Types, as_declared
from kbgate.tasks.inputs.readers import read_cards
from kbgate.tasks.predicates import BUILT_IN_FIELDS, LARGEST
from kbgate.tasks.records import Record, digest, nfc, one_line, problems_of
from kbgate.tasks.settings import FILE, Suite, is_storable

Metadata = dict[str, Any]
"""Metadata as they may stand in a file: the validator says what is wrong with them."""


class CardRow(BaseModel):
    """One card as it may stand in a file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = Field(min_length=1, max_length=400)
    title: str = ""
    text: str
    language: str = ""
    concept: str = ""
    description: str = ""
    tier: Literal["gold", "silver", ""] = ""
    domain: str = ""
    topics: list[str] = []
    valid_from: str = ""
    valid_until: str = ""
    updated_at: str = ""
    source_url: str = ""
    metadata: Metadata = {}

    @field_validator("id")
    @classmethod
    def _id_is_one_line(cls, value: str) -> str:
        return nfc(one_line(value))

    @field_validator("valid_from", "valid_until", "updated_at")
    @classmethod
    def _date_is_iso(cls, value: str) -> str:
        if value:
            first_second(value)
        return value

    @field_validator("metadata")
    @classmethod
    def _metadata_is_flat(cls, value: Metadata) -> Metadata:
        for key, item in value.items():
            if key in BUILT_IN_FIELDS or not is_storable(key):
                raise ValueError(f"'{key}' is the name of a card's own field or one the store refuses; rename the metadata key")
            items = item if isinstance(item, list) else [item]
            if any(isinstance(i, int | float) and not abs(i) <= LARGEST for i in items):
                raise ValueError(f"'{key}' is not finite, or too large to be compared exactly")
            if len({type(i) for i in items}) > 1 or not all(isinstance(i, str | int | float | bool) for i in items):
                raise ValueError(f"'{key}' is neither text, number, yes/no nor a list of one of these")
        return {key: item for key, item in value.items() if item != []}


def load_cards(suite: Suite) -> KnowledgeBase:
    """Read every card; what is wrong stands in `problems`, one sentence each."""
    path = (suite.folder / suite.kb.path).resolve()
    try:
        records, problems, left_out = read_cards(path, suite.kb, _own(suite) if path == suite.folder else ())
    except InputError as error:
        return KnowledgeBase({}, tuple(error.problems))
    cards: dict[str, Card] = {}
    looks: dict[str, Card] = {}
    nameless = [*problems]  # lines and files that could not be read
    # A document that says nothing else has its path as its id.
    rejected = {problem.file.rpartition(".")[0]: problem for problem in problems} if path.is_dir() else {}
    for record in records:
        card, mistakes = _read(record, looks, suite.kb.types)
        if card is not None:
            cards[card.id] = looks[as_seen(card.id)] = card
            continue
        problems += mistakes
        if name := _name(record):
            rejected.setdefault(name, mistakes[0])
        else:
            nameless.append(mistakes[0])
    if not cards and not problems:
        problems.append(Problem(path.name, 0, "holds no card"))
    return KnowledgeBase({name: cards[name] for name in sorted(cards)}, tuple(problems), rejected, tuple(nameless), left_out)


def _name(record: Record) -> str:
    """The id of a record that is no card; "" where it has none that could be a card's."""
    name = record.content.get("id")
    try:
        return nfc(one_line(name)) if isinstance(name, str) else ""
    except ValueError:
        return ""


def _own(suite: Suite) -> list[str]:
    """The files of a suite that are none of its cards, where these stand in its own folder."""
    return [FILE, *(path.name for name in ("golden.*", "baseline.*", "calibration.json") for path in suite.folder.glob(name))]


def _read(record: Record, looks: dict[str, Card], types: Types) -> tuple[Card | None, list[Problem]]:
    """The card of a record, or every mistake in it; `looks`: the cards before it, by their ids as they are seen."""
    given, undeclared = _given(record, types)
    mistakes = [Problem(record.file, record.line, sentence, found) for sentence, found in undeclared]
    try:
        row = CardRow.model_validate(given)
    except ValidationError as error:
        return None, [*mistakes, *problems_of(error, record.file, record.line, CardRow)]
    mistakes += [Problem(record.file, record.line, sentence) for sentence in _contradictions(row)]
    if first := looks.get(as_seen(row.id)):
        taken = "taken by" if first.id == row.id else f"to the eye the same as '{first.id}' of"
        mistakes.append(Problem(record.file, record.line, f"id '{row.id}' is {taken} {first.file}:{first.line}"))
    return (None, mistakes) if mistakes else (_card(row, record), [])


def _given(record: Record, types: Types) -> tuple[dict[str, JsonValue], list[tuple[str, str]]]:
    """What a record says of its card, and what is not as declared: what is null was not given, in whatever file."""
    given = {name: value for name, value in record.content.items() if value is not None}
    undeclared: list[tuple[str, str]] = []
    metadata = given.get("metadata")
    if isinstance(metadata, dict):
        present = {name: value for name, value in metadata.items() if value is not None}
        given["metadata"], undeclared = as_declared(present, types)
    return given, undeclared


def _contradictions(row: CardRow) -> Iterator[str]:
    if is_blank(row.text) and is_blank(row.title):
        yield f"card '{row.id}' has neither title nor text"
    start, end = row.valid_from, row.valid_until
    if start and end and first_second(start) > last_second(end):
        yield f"card '{row.id}' is valid from {start} until {end}: never"


def _card(row: CardRow, record: Record) -> Card:
    content = row.model_dump()
    seen = digest({name: value for name, value in content.items() if name not in ("id", "updated_at")}, 16)
    return Card(**{**content, "topics": tuple(row.topics)}, hash=seen, file=record.file, line=record.line)
