"""Filters and access rules held against cards: a rule that no card satisfies, or that no gold can, and what stands there.

Text never equals a number, nor a list one of its items, in the store as here. A rule of one type on a field of another hides
every card, and a case whose gold is hidden from its asker leaves the means: nothing in any figure would tell.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kbgate.tasks.domain import Baseline, Card, Cards, Case, Cases, KnowledgeBase, Predicate
from kbgate.tasks.errors import counted, did_you_mean, named
from kbgate.tasks.manifest import Then, changed_since, may_match
from kbgate.tasks.predicates import (
    BUILT_IN_FIELDS,
    asked_type,
    conditions_of,
    in_store_values,
    matches,
    store_fields,
    type_of,
)
from kbgate.tasks.records import canonical
from kbgate.tasks.rules.stock import ByType, Stock, names_in
from kbgate.tasks.rules.wording import advice, place_of, short
from kbgate.tasks.settings import Kb
from kbgate.tasks.tables import Fields

_LONGEST_RULE = 200
"""Characters of a rule that a sentence shows."""
_MOST = 200
"""Values among which the nearest is looked for."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """A rule of a case that no card satisfies, or that no gold of it can."""

    case: Case
    rule: str
    """filter, entitled or right_filter."""
    written: str
    """As JSON, its beginning where it is long."""
    sentence: str
    """What it asks for, what stands there and where, what is allowed."""
    change: str
    """How cards of the baseline's manifest that satisfied it changed since; "" where none did."""


def unmet_rules(cases: Cases, kb: KnowledgeBase, settings: Kb, baseline: Baseline | None) -> list[Unmet]:
    """Every rule of every case that no card satisfies or no gold can, because of its type or shape, in the cases' order."""
    held = _Held(kb.cards, settings, baseline)
    return [unmet for case in cases.values() for name, rule in rules_of(case) if (unmet := held.unmet(case, name, rule))]


def rules_of(case: Case) -> Iterator[tuple[str, Predicate]]:
    """The rules of a case by name, as they are written."""
    for name, written in (("filter", case.filter), ("entitled", case.entitled), ("right_filter", case.right_filter)):
        if written is not None:
            yield name, written


def unseen_cases(cases: Cases, kb: KnowledgeBase, settings: Kb) -> list[str]:
    """The cases whose asker may see none of their golds; one that is gone from the knowledge base counts as seen."""
    unseen = []
    for case in cases.values():
        if case.entitled is None or not case.groups or any(card not in kb.cards for card in case.grades):
            continue
        rule = in_store_values(case.entitled)
        golds = {card for group in case.groups for card in group}
        if not any(matches(rule, store_fields(kb.cards[card], settings.filterable)) for card in golds):
            unseen.append(case.id)
    return unseen


_About = tuple[str, tuple[str, ...]]
"""What is wrong, as a sentence, and the fields it is about; `_NOTHING` where nothing is."""
_NOTHING: _About = ("", ())


class _Held:
    """Cards, those of now and those of the baseline, to hold rules against."""

    def __init__(self, cards: Cards, settings: Kb, baseline: Baseline | None):
        self._cards, self._settings, self._baseline = cards, settings, baseline
        self._stock = Stock(cards, settings.filterable)
        self._of = self._stock.fields
        self._known: dict[tuple[str, bool], _About] = {}
        self._changed: list[Then] | None = None

    def unmet(self, case: Case, name: str, written: Predicate) -> Unmet | None:
        """What is wrong with a rule of a case, or None."""
        rule = in_store_values(written)
        # A gold that is gone is told elsewhere, and so is what its rule and its group no longer find.
        groups = [[self._cards[card] for card in group] for group in case.groups if all(card in self._cards for card in group)]
        among: Collection[str] | None = None
        sentence, names = _NOTHING
        if not self._is_met(rule, [card for group in groups for card in group]):
            sentence, names = self._of_cards(rule, whole=len(groups) == len(case.groups))
        if not sentence:
            sentence, names, among = self._of_golds(rule, groups)
        if not sentence:
            return None
        change = self._change(rule, names, among)
        if self._baseline and among is None and not change:
            sentence += "; none of the baseline's did either"
        return Unmet(case, name, short(written, _LONGEST_RULE), sentence, change)

    def _is_met(self, rule: Predicate, golds: Sequence[Card]) -> bool:
        """Whether golds alone show that some card satisfies a rule, and that each of its fields can be compared."""
        fields = [self._of(card) for card in golds]
        return any(matches(rule, of_card) for of_card in fields) and all(
            any(name in of_card and not self._mistyped(rule, of_card, (name,)) for of_card in fields) for name in names_in(rule)
        )

    def _of_golds(
        self, rule: Predicate, groups: Sequence[Sequence[Card]]
    ) -> tuple[str, tuple[str, ...], Collection[str] | None]:
        """The first group of golds none of which satisfies a rule, each because of what one of its fields is."""
        for group in groups:
            wrong = [self._mistyped(rule, self._of(card)) for card in group]
            if all(wrong) and not any(matches(rule, self._of(card)) for card in group):
                name = wrong[0][0]
                sentence = (
                    f"no gold of the case can satisfy it: {self._told(rule, name, self._stock.by_type(name, group), 'gold')}"
                )
                return sentence, wrong[0], frozenset(card.id for card in group)
        return *_NOTHING, None

    def _of_cards(self, rule: Predicate, whole: bool) -> _About:
        """What keeps every card from satisfying a rule: a field's type, and where the golds are `whole` a value too."""
        key = (canonical(rule), whole)
        if key not in self._known:
            self._known[key] = self._uncompared(rule) or (self._unsatisfied(rule) if whole else None) or _NOTHING
        return self._known[key]

    def _uncompared(self, rule: Predicate) -> _About | None:
        for name in names_in(rule):
            asked = {asked_type(op, wanted) for field, op, wanted in conditions_of(rule) if field == name}
            stock = self._stock.of(name)
            if stock and asked.isdisjoint(stock):
                return f"no card can be compared: {self._told(rule, name, stock, 'card')}", (name,)
        return None

    def _unsatisfied(self, rule: Predicate) -> _About | None:
        names = names_in(rule)
        if self._stock.satisfies(rule):
            return None
        return f"no card satisfies it: {'; '.join(self._missing(rule, name) for name in names)}", names

    def _mistyped(self, rule: Predicate, fields: Fields, names: Collection[str] = ()) -> tuple[str, ...]:
        """The fields of a card that hold what no condition of a rule on them can be compared with."""
        asked: dict[str, set[str]] = {}
        for name, op, wanted in conditions_of(rule):
            if name in fields and (not names or name in names):
                asked.setdefault(name, set()).add(asked_type(op, wanted))
        return tuple(name for name, types in asked.items() if type_of(fields[name]) not in types)

    def _told(self, rule: Predicate, name: str, cards: ByType, noun: str) -> str:
        """What a rule asks for in a field, what stands there instead, and what is allowed."""
        conditions = [condition for condition in conditions_of(rule) if condition[0] == name]
        asked = " or ".join(dict.fromkeys(asked_type(op, wanted) for _, op, wanted in conditions))
        stored = self._stored(name, cards, noun)
        return f"it asks for {asked} in '{name}', which is {stored}; {advice(conditions[0], next(iter(cards)))}"

    def _stored(self, name: str, cards: ByType, noun: str) -> str:
        """What stands in a field, by type, with an example of each."""
        return " and ".join(
            f"{found} in {counted(len(holders), noun)} ({self._shown(holders[0], name)} in {place_of(holders[0])})"
            for found, holders in cards.items()
        )

    def _missing(self, rule: Predicate, name: str) -> str:
        """What the cards have in a field in which a rule found nothing."""
        cards = self._stock.of(name)
        if not cards:
            there = {key for card in self._cards.values() for key in card.metadata} if name not in BUILT_IN_FIELDS else ()
            return f"no card has '{name}'" + (f" ({did_you_mean(name, there)})" if there else "")
        words = [wanted for field, op, wanted in conditions_of(rule) if field == name and op in ("$eq", "$contains")]
        values = self._stock.words(name)
        near = ""
        if words and isinstance(words[0], str) and 0 < len(values) <= _MOST and words[0] not in values:
            near = f"; {did_you_mean(words[0], values)}"
        return f"'{name}' is {self._stored(name, cards, 'card')}{near}"

    def _shown(self, card: Card, name: str) -> str:
        """A field of a card as its file has it."""
        value = getattr(card, name) if name in BUILT_IN_FIELDS else card.metadata[name]
        if self._settings.types.get(name) == "date" and isinstance(value, int | float):
            with contextlib.suppress(ValueError, OverflowError, OSError):  # a number that is no date
                return dt.datetime.fromtimestamp(value, dt.UTC).isoformat()
        return short(value)

    def _change(self, rule: Predicate, names: Sequence[str], among: Collection[str] | None) -> str:
        """How a card that satisfied a rule in the baseline changed, one that is known in full before others; "" for none."""
        witnesses = [
            then
            for then in self._then()
            if (among is None or then.card.id in among)
            and may_match(rule, then)
            and not set(self._mistyped(rule, then.fields, names))
            and any(name in then.fields or name in then.hidden for name in names)
        ]
        if not witnesses:
            return ""
        then = min(witnesses, key=lambda then: bool(then.hidden & {*names}))
        more = f"; {counted(len(witnesses) - 1, 'more card')} likewise" if len(witnesses) > 1 else ""
        return f"{self._turned(then, names)}{more}"

    def _then(self) -> list[Then]:
        if self._changed is None:
            self._changed = changed_since(self._baseline, self._cards, self._settings.filterable)
        return self._changed

    def _turned(self, then: Then, names: Sequence[str]) -> str:
        now = self._cards.get(then.card.id)
        was = {name: self._as_it_was(then, name) for name in names if name in then.fields or name in then.hidden}
        if now is None:
            labels = named(f"'{name}' was {value}" for name, value in was.items())
            return f"card '{then.card.id}' is gone, where {labels}"
        turned = []
        for name, value in was.items():
            fields = self._of(now)
            is_now = f"is {self._shown(now, name)} ({type_of(fields[name])})" if name in fields else "is gone"
            if name in then.hidden or fields.get(name) != then.fields[name]:
                turned.append(f"'{name}' was {value} and {is_now} in {place_of(now)}")
        return named(turned)

    def _as_it_was(self, then: Then, name: str) -> str:
        if name in then.hidden:
            return "too long for the baseline's manifest"
        return f"{self._shown(then.card, name)} ({type_of(then.fields[name])})"
