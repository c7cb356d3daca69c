"""The gate: every check says nothing or a sentence, and the sentences make the verdict.

A check is one decorated function in the file of its kind that looks at the exam and yields `Reason`s. What was not measured
is never green: a check that cannot look says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kbgate.tasks.domain import Mode
from kbgate.tasks.registry import Registry, first_line
from kbgate.tasks.verdicts import Code, Exam, Level, Reason, Verdict, VerdictName

Look = Callable[[Exam], Iterator[Reason]]

LAST = 50
"""The place of a check that says nothing of its own."""
GATED = "gated"
"""The level of a check that takes it from the suite."""
_VERDICTS = {
    Level.ERROR: VerdictName.ERROR,
    Level.CRITICAL: VerdictName.BLOCK,
    Level.INCONCLUSIVE: VerdictName.INCONCLUSIVE,
    Level.SUPPORTING: VerdictName.WARN,
}
"""By the gravest level among the reasons, gravest first; none of these is a PASS."""


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


def judge(exam: Exam) -> Verdict:
    """The verdict of an exam: every check's sentences, and the gravest level among them."""
    reasons = sorted((reason for part in CHECKS.values() for reason in part.look(exam)), key=_order)
    for level, name in _VERDICTS.items():
        codes = [reason.code for reason in reasons if reason.level == level]
        if codes:
            code = codes[0] if level == Level.INCONCLUSIVE else Code.NONE
            return Verdict(name, tuple(reasons), code, provisional=exam.run.mode == Mode.FAST and name.exit_code != 0)
    return Verdict(VerdictName.PASS, tuple(reasons))


def _order(reason: Reason) -> tuple[int, int, str, str]:
    place = CHECKS[reason.check].place if reason.check in CHECKS else LAST
    return reason.level.gravity, place, reason.check, reason.sentence
