"""Why a gold card is not where it should be: one rule a file, each proven by changing one thing and looking again.

`@cause(name, order=...)` on a function of a missing gold and the laboratory that returns what it `Confirmed`, or None. The
first in order that confirms is the cause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.registry import Registry, first_line


@dataclass(frozen=True)
class Missing:
    """A gold card that should be in the top k of a case and is not."""

    case: str
    gold: str
    then: int | None
    """Its rank in the baseline; None where it was not found, or there is no baseline."""
    now: int | None
    """Its rank in the run."""
    stood: bool
    """Whether it stood in the top k of the baseline: then its cause is something that changed."""
    excerpt: str = ""
    """The evidence that no longer stands in the card; "" where the card itself is missing from the ranking."""


@dataclass(frozen=True)
class Confirmed:
    """What a rule found."""

    sentence: str
    culprits: tuple[str, ...] = ()
    proven: bool = True
    cause: str = ""
    """The cause by name, where a rule finds that another one's applies to another card; "" for its own."""


Look = Callable[[Missing, Laboratory], Confirmed | None]


@dataclass(frozen=True)
class Cause:
    """A declared cause."""

    name: str
    order: int
    look: Look
    changed: tuple[str, ...] = ()
    """For a gold that stood in the top k: what must have changed since (card, case, or a section of the settings), any
    of it; () where the cause needs none of these."""
    verb: str = ""
    """What it did, where its culprits are named after it: "displaced by"."""
    of_evidence: bool = False
    """True where the cause also explains evidence that is gone from a card which is found."""
    lost_by_index: bool = False
    """True for the one cause that explains a gold which exact search does find."""

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""
        return first_line(self.look)


CAUSES: Registry[Cause] = Registry("cause", "kbgate.tasks.diagnosis.causes")


def cause(name: str, *, order: int, **declared: Any) -> Callable[[Look], Look]:
    """Declare a cause: `@cause("removed", order=10) def removed(missing, lab)`."""

    def declare(look: Look) -> Look:
        CAUSES.add(name, Cause(name, order, look, **declared))
        return look

    return declare
