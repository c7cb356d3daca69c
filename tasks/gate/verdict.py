"""The verdict: every check looks at the exam, and the gravest of their sentences decides."""

from __future__ import annotations

from kbgate.tasks.conclusions import Code, Exam, Level, Reason, Verdict, VerdictName
from kbgate.tasks.domain import Mode
from kbgate.tasks.gate import CHECKS, LAST

_VERDICTS = {
    Level.ERROR: VerdictName.ERROR,
    Level.CRITICAL: VerdictName.BLOCK,
    Level.INCONCLUSIVE: VerdictName.INCONCLUSIVE,
    Level.SUPPORTING: VerdictName.WARN,
}
"""By the gravest level among the reasons, gravest first; none of these is a PASS."""


def judge(exam: Exam) -> Verdict:
    """The verdict of an exam: every check's sentences, and the gravest level among them."""
    reasons = sorted((reason for part in CHECKS.values() for reason in part.look(exam)), key=_order)
    for level, name in _VERDICTS.items():
        codes = [reason.code for reason in reasons if reason.level == level]
        if codes:
            code = codes[0] if level == Level.INCONCLUSIVE else Code.NONE
            return Verdict(name, tuple(reasons), code, provisional=exam.run.mode == Mode.FAST and name.exit_code != 0)
    return Verdict(VerdictName.PASS, tuple(reasons))


def _order(reason: Reason) -> tuple[int, int, str]:
    """Gravest first; a check's own sentences stay in the order in which it says them."""
    place = CHECKS[reason.check].place if reason.check in CHECKS else LAST
    return reason.level.gravity, place, reason.check
