"""Is the baseline still what people agreed on not long ago?"""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Iterator

from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.domain import Baseline
from kbgate.tasks.gate import check
from kbgate.tasks.gate.gold_texts import offer
from kbgate.tasks.settings import Suite


def is_too_old(baseline: Baseline | None, suite: Suite, day: dt.date) -> bool:
    """Whether a baseline is older than `[baseline] max_age_days` on a day."""
    return baseline is not None and (day - baseline.summary.accepted.on).days > suite.baseline.max_age_days


@check("baseline_age", level="supporting")
def baseline_age(exam: Exam) -> Iterator[Reason]:
    """The baseline is no older than `[baseline] max_age_days`."""
    if exam.baseline is not None and is_too_old(exam.baseline, exam.suite, exam.today):
        age, allowed = (exam.today - exam.baseline.summary.accepted.on).days, exam.suite.baseline.max_age_days
        command = f'kbgate baseline update {shlex.quote(exam.suite.given)} --reason "..."'
        anew = offer(exam, f"; look at the report and accept anew: {command}")
        sentence = f"the baseline is {age} days old, {allowed} are allowed{anew}"
        yield Reason("baseline_age", Level.SUPPORTING, sentence)
