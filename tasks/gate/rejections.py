"""Cards that were rejected when the knowledge base was read: how many may be, and which never."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.domain import Baseline, Cases, KnowledgeBase
from kbgate.tasks.errors import counted, named
from kbgate.tasks.gate import check
from kbgate.tasks.tables import EPSILON


@check("rejected", level=Level.CRITICAL)
def rejected(exam: Exam) -> Iterator[Reason]:
    """No more cards were rejected than [kb] rejected_share allows, and none that a question needs."""
    yield from rejections(exam.kb, exam.golden, exam.baseline, exam.suite.kb.rejected_share)


def rejections(kb: KnowledgeBase, golden: Cases, baseline: Baseline | None, share: float) -> Iterator[Reason]:
    """What is to be said of the rejected cards; nothing where there are none. `share`: how many of all may be.

    A question needs its golds and what the baseline has in its top k. A line without a readable id may be any card: where one
    of those is missing, it is taken for it. A mistake that took other cards along is counted as none that a share allows.
    """
    if not kb.problems:
        return
    needed = {card for case in golden.values() for card in case.grades}
    needed |= {card for row in baseline.cases.values() for card in row.top} if baseline else set()
    hit = sorted(needed & set(kb.rejected))
    if hit:
        sentence = f"{counted(len(hit), 'rejected card')} that a gold or an accepted top k names: {named(hit)}"
        yield Reason("rejected", Level.CRITICAL, f"{sentence}; first: {kb.rejected[hit[0]]}")
    missing = sorted(needed - set(kb.cards) - set(kb.rejected))
    if kb.nameless and missing:
        sentence = f"{counted(len(kb.nameless), 'rejected card')} of unknown id, while a gold or an accepted top k names"
        yield Reason("rejected", Level.CRITICAL, f"{sentence} {named(missing)}, which is not there; first: {kb.nameless[0]}")
    total = len(kb.cards) + kb.refusals
    uncounted = [problem for problem in kb.problems if problem.takes_more]
    if uncounted:
        sentence = f"at least {kb.refusals} of {counted(total, 'card')} rejected, nobody knows how many more"
        yield Reason("rejected", Level.CRITICAL, f"{sentence}, so no share allows them; first: {uncounted[0]}")
        return
    level = Level.SUPPORTING if kb.refusals <= math.floor(share * total + EPSILON) else Level.CRITICAL
    allowed = f"a share of {share:g} is allowed" if share else "none may be"
    yield Reason("rejected", level, f"{kb.refusals} of {counted(total, 'card')} rejected, {allowed}; first: {kb.problems[0]}")
