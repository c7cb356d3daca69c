"""The baseline's manifest read as cards again: what filters could see of those that are gone or changed since."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kbgate.tasks.domain import Baseline, Card, Cards, Predicate
from kbgate.tasks.predicates import matches, parts_of, store_fields
from kbgate.tasks.schema import BaselineCard
from kbgate.tasks.tables import Fields

HASHED = "sha256:"
"""How a value begins that was too long for a line."""


@dataclass(frozen=True, slots=True)
class Then:
    """A card as it was when the baseline was accepted: what filters look at, and no text."""

    card: Card
    fields: Fields
    hidden: frozenset[str]
    """Fields of which there is a hash alone."""


def changed_since(baseline: Baseline | None, cards: Cards, filterable: Collection[str]) -> list[Then]:
    """The cards of the baseline that are gone or changed; of all others the knowledge base says more."""
    rows = baseline.cards.values() if baseline else ()
    return [_then(row, filterable) for row in rows if row.id not in cards or cards[row.id].hash != row.hash]


def may_match(rule: Predicate, then: Then) -> bool:
    """Whether a card satisfied a rule, or may have, by a field of which there is a hash alone."""
    joined, parts = parts_of(rule)
    if joined == "$and":
        return all(may_match(part, then) for part in parts)
    if joined == "$or":
        return any(may_match(part, then) for part in parts)
    return not then.hidden.isdisjoint(rule) or matches(rule, then.fields)


def _then(row: BaselineCard, filterable: Collection[str]) -> Then:
    hidden = frozenset(name for name, value in row.fields.items() if isinstance(value, str) and value.startswith(HASHED))
    known = {name: value for name, value in row.fields.items() if name not in hidden}
    topics = known.pop("topics", [])
    card = Card(
        id=row.id,
        title="",
        text="",
        language=row.language,
        tier=row.tier,
        domain=row.domain,
        topics=tuple(map(str, topics)) if isinstance(topics, list) else (),
        valid_from=str(known.pop("valid_from", "")),
        valid_until=str(known.pop("valid_until", "")),
        metadata=known,  # type: ignore[arg-type]
    )
    return Then(card, store_fields(card, filterable), hidden)
