"""Known faults for the fire drill: one a function, on a copy of a suite, with the causes a diagnosis should name.

`@fault(name, causes=...)` on a function of the copy and a random draw that spoils the copy and returns what it `Spoiled`, or
None where the fault does not apply to what was drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kbgate.tasks.registry import Registry, first_line

BAD_INPUT = "bad input"
"""What names a fault that is refused before anything is asked."""


@dataclass
class Copy:
    """A suite's files as values, to be spoiled."""

    settings: dict[str, Any]
    """suite.toml."""
    cards: list[dict[str, Any]]
    cases: list[dict[str, Any]]
    day: str
    """The day of the exam, ISO."""
    models: dict[str, str] = field(default_factory=dict)
    """Other models at hand, by name: folder."""
    golds: tuple[str, ...] = ()
    """Cards that stand in the top k as someone's gold: what there is to lose."""

    def card(self, name: str) -> dict[str, Any]:
        """The card of that id."""
        return next(card for card in self.cards if card["id"] == name)

    def section(self, name: str) -> dict[str, Any]:
        """A table of suite.toml, made where there is none."""
        table: dict[str, Any] = self.settings.setdefault(name, {})
        return table


@dataclass(frozen=True)
class Spoiled:
    """What a fault did."""

    target: str
    """The card, case or setting it is about."""
    names: tuple[str, ...] = ()
    """What a right diagnosis names, any of it; () where naming the cause is enough."""


Spoil = Callable[[Copy, Random], Spoiled | None]


@dataclass(frozen=True)
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


def any_card(copy: Copy, draw: Random) -> dict[str, Any]:
    """A card at random, half the time one that someone's question needs."""
    if copy.golds and draw.random() < 0.5:
        return copy.card(draw.choice(copy.golds))
    return draw.choice(copy.cards)
