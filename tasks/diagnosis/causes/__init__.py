"""Why a gold card is not where it should be: one rule a file, each proven by changing one thing and looking again.

`@cause(name, after=...)` on a function of a missing gold and the laboratory that returns what it `Confirmed`, or None. The
first in order that confirms is the cause; the order is said by what each comes after.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.errors import Problem, UnknownPart, did_you_mean, named
from kbgate.tasks.registry import Registry, first_line


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What a rule confirmed."""

    sentence: str
    culprits: tuple[str, ...] = ()
    proven: bool = True
    cause: str = ""
    """The cause by name, where a rule finds that another one's applies to another card; "" for its own."""


Look = Callable[[Missing, Laboratory], Confirmed | None]


class Declared(TypedDict, total=False):
    """What a cause may say of itself; what is left out has the defaults of `Cause`."""

    changed: tuple[str, ...]
    verb: str
    of_evidence: bool
    lost_by_index: bool


@dataclass(frozen=True, slots=True)
class Cause:
    """A declared cause."""

    name: str
    look: Look
    after: tuple[str, ...] = ()
    """The causes that are looked at before it."""
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


def cause(name: str, *, after: str | Sequence[str] = (), **declared: Unpack[Declared]) -> Callable[[Look], Look]:
    """Declare a cause: `@cause("rejected", after="removed") def rejected(missing, lab)`."""

    def declare(look: Look) -> Look:
        CAUSES.add(name, Cause(name, look, (after,) if isinstance(after, str) else tuple(after), **declared))
        return look

    return declare


def in_order() -> tuple[Cause, ...]:
    """The causes in the order in which they are looked at: each after those it names, ties by name.

    Raises `UnknownPart` where one comes after a cause that nobody declared, ValueError where some come after each other.
    """
    waiting = {name: set(part.after) for name, part in CAUSES.items()}
    problems = [
        Problem(f"cause '{name}'", 0, f"comes after the unknown cause '{before}'; {did_you_mean(before, waiting)}")
        for name, earlier in waiting.items()
        for before in sorted(earlier - set(waiting))
    ]
    if problems:
        raise UnknownPart(problems)
    ready = sorted(name for name, earlier in waiting.items() if not earlier)
    order: list[Cause] = []
    while ready:
        first = heapq.heappop(ready)
        order.append(CAUSES[first])
        for name, earlier in waiting.items():
            if first in earlier:
                earlier.remove(first)
                if not earlier:
                    heapq.heappush(ready, name)
    if len(order) < len(waiting):
        circle = sorted(name for name, earlier in waiting.items() if earlier)
        raise ValueError(f"these causes come after each other, so that none can be first: {named(circle)}")
    return tuple(order)
