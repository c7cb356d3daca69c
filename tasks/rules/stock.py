"""Cards by what filters can see of them, so that a rule is not asked of each: many rules meet many cards before every run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kbgate.tasks.domain import Card, Cards, Predicate
from kbgate.tasks.predicates import conditions_of, matches, parts_of, store_fields, type_of
from kbgate.tasks.tables import Fields, Scalar, Value

ByType = Mapping[str, Sequence[Card]]
"""Cards by the type of one of their fields."""


class Stock:
    """The cards of a knowledge base, looked through once for each field that a rule names."""

    def __init__(self, cards: Cards, filterable: Sequence[str]):
        self._cards, self._filterable = cards, filterable
        self._fields: dict[str, Fields] = {}
        self._examples: dict[tuple[str, ...], list[Card]] = {}
        self._types: dict[str, ByType] = {}
        self._indices: dict[str, Mapping[object, Sequence[Card]]] = {}
        self._words: dict[str, frozenset[str]] = {}

    def satisfies(self, rule: Predicate) -> bool:
        """Whether some card satisfies a rule."""
        few = self._candidates(rule)
        return any(matches(rule, self.fields(card)) for card in (self._different(names_in(rule)) if few is None else few))

    def words(self, name: str) -> frozenset[str]:
        """The texts in a field, those of lists among them."""
        if name not in self._words:
            self._words[name] = frozenset(
                w for card in self._different((name,)) for w in _texts(self.fields(card).get(name, ()))
            )
        return self._words[name]

    def fields(self, card: Card) -> Fields:
        """What filters see of a card."""
        if card.id not in self._fields:
            self._fields[card.id] = store_fields(card, self._filterable)
        return self._fields[card.id]

    def of(self, name: str) -> ByType:
        """All cards that have a field, by its type."""
        if name not in self._types:
            self._types[name] = self.by_type(name, self._cards.values())
        return self._types[name]

    def by_type(self, name: str, cards: Iterable[Card]) -> ByType:
        """Those of some cards that have a field, by its type."""
        of_type: dict[str, list[Card]] = {}
        for card in cards:
            if name in self.fields(card):
                of_type.setdefault(type_of(self.fields(card)[name]), []).append(card)
        return of_type

    def _candidates(self, rule: Predicate) -> Sequence[Card] | None:
        """The cards that may satisfy a rule, by the values it names; None where it names none."""
        joined, parts = parts_of(rule)
        if joined:
            found = [self._candidates(part) for part in parts]
            known = [cards for cards in found if cards is not None]
            if joined == "$and":
                return min(known, key=len, default=None)
            return [card for cards in known for card in cards] if len(known) == len(found) else None
        ((name, op, wanted),) = conditions_of(rule)
        if op not in ("$eq", "$in", "$contains"):
            return None
        index = self._index(name)
        values: Sequence[Scalar] = wanted if isinstance(wanted, list | tuple) else [wanted]  # type: ignore[list-item]
        return [card for value in values for card in index.get(_key([value] if op == "$contains" else value), ())]

    def _index(self, name: str) -> Mapping[object, Sequence[Card]]:
        """The cards by the value of a field; a list is found by each of its items."""
        if name not in self._indices:
            index: dict[object, list[Card]] = {}
            for cards in self.of(name).values():
                for card in cards:
                    value = self.fields(card)[name]
                    for one in [[item] for item in value] if isinstance(value, list | tuple) else [value]:
                        index.setdefault(_key(one), []).append(card)
            self._indices[name] = index
        return self._indices[name]

    def _different(self, names: tuple[str, ...]) -> list[Card]:
        """A card for each way in which these fields are filled: a rule on them need not be asked of more."""
        if names not in self._examples:
            examples: dict[object, Card] = {}
            for card in self._cards.values():
                fields = self.fields(card)
                examples.setdefault(tuple(_key(fields[name]) if name in fields else None for name in names), card)
            self._examples[names] = list(examples.values())
        return self._examples[names]


def names_in(rule: Predicate) -> tuple[str, ...]:
    """The fields of a rule."""
    return tuple(sorted({name for name, _, _ in conditions_of(rule)}))


def _key(value: Value) -> object:
    """What tells a value apart: True is not 1."""
    return type_of(value), tuple(value) if isinstance(value, list | tuple) else value


def _texts(value: Value) -> Iterable[str]:
    return [item for item in (value if isinstance(value, list | tuple) else [value]) if isinstance(item, str)]
