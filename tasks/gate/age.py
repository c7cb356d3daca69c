"""Is the baseline still what people agreed on not long ago?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.gate import check


@check("baseline_age", level="supporting")
def baseline_age(exam: Exam) -> Iterator[Reason]:
    """The baseline is no older than `[baseline] max_age_days`."""
    if exam.baseline is None:
        return
    age = (exam.today - exam.baseline.summary.accepted.on).days
    allowed = exam.suite.baseline.max_age_days
    if age > allowed:
        command = f'kbgate baseline update {shlex.quote(exam.suite.given)} --reason "..."'
        sentence = f"the baseline is {age} days old, {allowed} are allowed; look at the report and accept anew: {command}"
        yield Reason("baseline_age", Level.SUPPORTING, sentence)
