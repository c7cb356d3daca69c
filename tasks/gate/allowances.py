"""Dated exceptions: a fall that is meant, for one case and one check, until a day. Afterwards it is as if it were not there."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator

from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.gate import check
from kbgate.tasks.settings import Allow, Suite


def in_force(suite: Suite, day: dt.date) -> tuple[Allow, ...]:
    """The exceptions that hold on a day."""
    return tuple(allow for allow in suite.allowances if day <= allow.until)


def unexcused(exam: Exam, name: str, cases: Iterable[str]) -> list[str]:
    """The cases that no allowance in force excuses from the check."""
    excused = {allow.case for allow in in_force(exam.suite, exam.today) if allow.check == name}
    return [case for case in cases if case not in excused]


@check("allowances", level="advisory")
def allowances(exam: Exam) -> Iterator[Reason]:
    """Every exception says whom it excuses and until when, and one that has ended says so."""
    for allow in exam.suite.allowances:
        ended = exam.today > allow.until
        says = "ended on" if ended else "is in force until"
        sentence = f"the allowance for {allow.case} ({allow.check}: {allow.reason}) {says} {allow.until.isoformat()}"
        yield Reason("allowances", Level.ADVISORY, sentence, (allow.case,))
