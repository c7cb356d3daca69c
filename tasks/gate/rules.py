"""Do filters and access rules still meet cards? Where none does, a question leaves the figures without a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.errors import counted, named
from kbgate.tasks.gate import check
from kbgate.tasks.gate.allowances import unexcused
from kbgate.tasks.rules import unmet_rules, unseen_cases

NAME = "unmet_rules"


@check(NAME, level=Level.CRITICAL, excusable=True, place=1)
def rules_are_met(exam: Exam) -> Iterator[Reason]:
    """Every filter and access rule is satisfied by some card, and by golds of its case, where it was in the baseline."""
    alike: dict[str, list[str]] = {}
    for unmet in unmet_rules(exam.golden, exam.kb, exam.suite.kb, exam.baseline):
        if unexcused(exam, NAME, [unmet.case.id]):
            was = "was satisfied in the baseline and no longer is" if unmet.change else "cannot be satisfied"
            alike.setdefault(f"{unmet.rule} {unmet.written} {was}: {unmet.change or unmet.sentence}", []).append(unmet.case.id)
    for sentence, cases in sorted(alike.items()):
        yield Reason(NAME, Level.CRITICAL, f"{named(cases)}: {sentence}", tuple(cases))


@check("unseen_gold", level=Level.SUPPORTING, excusable=True)
def unseen_gold(exam: Exam) -> Iterator[Reason]:
    """Every asker may see an answer; a case whose asker may see none of its golds is judged by access alone, and told."""
    unseen = unexcused(exam, "unseen_gold", unseen_cases(exam.asked, exam.kb, exam.suite.kb))
    if unseen:
        yield Reason("unseen_gold", Level.SUPPORTING, unseen_sentence(unseen), tuple(unseen))


def unseen_sentence(cases: Sequence[str]) -> str:
    """How cases are told whose asker may see none of their golds."""
    why = "its asker may see none of its golds" if len(cases) == 1 else "their askers may see none of their golds"
    return f"{counted(len(cases), 'case')} judged by access alone, for {why}: {named(cases)}"
