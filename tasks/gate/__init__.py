"""The gate: every check says nothing or a sentence, and the sentences make the verdict.

A check is one decorated function in the file of its kind that looks at the exam and yields `Reason`s. What was not measured
is never green: a check that cannot look says so.
"""

from __future__ import annotations

from kbgate.tasks.domain import Exam, Verdict
from kbgate.tasks.registry import CHECKS

_VERDICTS = {
    "error": ("ERROR", 4),
    "critical": ("BLOCK", 1),
    "inconclusive": ("INCONCLUSIVE", 3),
    "supporting": ("WARN", 0),
}
"""By the gravest level among the reasons, gravest first; none of these is a PASS."""


def judge(exam: Exam) -> Verdict:
    """The verdict of an exam: every check's sentences, and the gravest level among them."""
    order = [*_VERDICTS, "advisory"]
    found = [reason for rule in CHECKS.values() for reason in rule.look(exam)]
    reasons = tuple(sorted(found, key=lambda r: (order.index(r.level), _PRIORITY.get(r.check, 50), r.check, r.sentence)))
    for level, (name, exit_code) in _VERDICTS.items():
        codes = [reason.code for reason in reasons if reason.level == level]
        if codes:
            provisional = exam.run.mode == "fast" and exit_code != 0
            return Verdict(name, exit_code, reasons, codes[0] if level == "inconclusive" else "", provisional)
    return Verdict("PASS", 0, reasons)


_PRIORITY = {"completeness": 0, "vanished_gold": 1, "newly_failing": 2, "canaries": 3}
"""Whose sentence stands first among equals: the first line of a report is what a woken engineer reads."""
