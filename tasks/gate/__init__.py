"""The gate: every check says nothing or a sentence, and the sentences make the verdict.

A check is one decorated function in the file of its kind that looks at the exam and yields `Reason`s. What was not measured
is never green: a check that cannot look says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kbgate.tasks.conclusions import Exam, Reason
from kbgate.tasks.registry import Registry, first_line

Look = Callable[[Exam], Iterator[Reason]]

LAST = 50
"""The place of a check that says nothing of its own."""
GATED = "gated"
"""The level of a check that takes it from the suite."""


@dataclass(frozen=True, slots=True)
class Check:
    """A declared rule of the gate: looks at the exam, says nothing or one sentence for each thing it blocks."""

    name: str
    look: Look
    level: str
    """A `Level`, or "gated": taken from the suite."""
    excusable: bool = False
    """Whether it speaks of single cases whose drop can be meant, so that an [[allow]] may excuse one. Nothing excuses a
    leak, a lost index or an unanswered question."""
    place: int = LAST
    """Whose sentence stands first among equals: the first line of a report is what a woken engineer reads."""

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""
        return first_line(self.look)


CHECKS: Registry[Check] = Registry("check", __name__)


def check(name: str, *, level: str, excusable: bool = False, place: int = LAST) -> Callable[[Look], Look]:
    """Declare a gate check: `f(exam)` yields the `Reason`s that speak against the index, or nothing."""

    def declare(look: Look) -> Look:
        CHECKS.add(name, Check(name, look, level, excusable, place))
        return look

    return declare
