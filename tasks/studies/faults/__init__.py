"""Known faults for the fire drill: one a function, on a copy of a suite, with the causes a diagnosis should name.

`@fault(name, causes=...)` on a function of the copy and a random draw that spoils the copy and returns what it `Spoiled`, or
None where the fault does not apply to what was drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pydantic import JsonValue

from kbgate.tasks.domain import Card, Case
from kbgate.tasks.registry import Registry, first_line

BAD_INPUT = "bad input"
"""What names a fault that is refused before anything is asked."""

Settings = dict[str, Any]
"""suite.toml as TOML has it."""


@dataclass(slots=True)
class Copy:
    """A suite's files as values, to be spoiled."""

    settings: Settings
    cards: list[Card]
    cases: list[Case]
    day: str
    """The day of the exam, ISO."""
    models: dict[str, str] = field(default_factory=dict)
    """Other models at hand, by name: folder."""
    golds: tuple[str, ...] = ()
    """Cards that stand in the top k as someone's gold: what there is to lose."""
    written: dict[str, dict[str, JsonValue]] = field(default_factory=dict)
    """By card: keys of its line that are written as no card can be."""

    def card(self, name: str) -> Card:
        """The card of that id."""
        return next(card for card in self.cards if card.id == name)

    def edit(self, card: Card, edited: Card) -> None:
        """Put a card in another one's place."""
        self.cards[self.cards.index(card)] = edited

    def edit_case(self, case: Case, edited: Case) -> None:
        """Put a case in another one's place."""
        self.cases[self.cases.index(case)] = edited

    def section(self, name: str) -> Settings:
        """A table of suite.toml, made where there is none."""
        table: Settings = self.settings.setdefault(name, {})
        return table

    def copy(self) -> Copy:
        """The same, to be spoiled without spoiling this one: cards and cases never change, lists and tables do."""
        return dataclasses.replace(
            self,
            settings=deepcopy(self.settings),
            cards=list(self.cards),
            cases=list(self.cases),
            written=dict(self.written),
        )


@dataclass(frozen=True, slots=True)
class Spoiled:
    """What a fault did."""

    target: str
    """The card, case or setting it is about."""
    names: tuple[str, ...] = ()
    """What a right diagnosis names, any of it; () where naming the cause is enough."""


Spoil = Callable[[Copy, Random], Spoiled | None]


@dataclass(frozen=True, slots=True)
class Fault:
    """A declared fault."""

    name: str
    causes: tuple[str, ...]
    spoil: Spoil

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""
        return first_line(self.spoil)


FAULTS: Registry[Fault] = Registry("fault", "kbgate.tasks.studies.faults")


def fault(name: str, *, causes: tuple[str, ...]) -> Callable[[Spoil], Spoil]:
    """Declare a fault: `@fault("dropped", causes=("removed",)) def dropped(copy, draw)`."""

    def declare(spoil: Spoil) -> Spoil:
        FAULTS.add(name, Fault(name, causes, spoil))
        return spoil

    return declare


def any_card(copy: Copy, draw: Random) -> Card:
    """A card at random, half the time one that someone's question needs."""
    if copy.golds and draw.random() < 0.5:
        return copy.card(draw.choice(copy.golds))
    return draw.choice(copy.cards)
