"""Do the gold cards still say something? One that lost its text goes on ranking by its title."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbgate.tasks.comparison.gold_texts import LostText, TextLoss, lost_texts, shrinkage
from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.errors import counted, named
from kbgate.tasks.gate import check
from kbgate.tasks.gate.allowances import unexcused

NAME = "gold_text"
_SAID: dict[TextLoss, tuple[Level, str]] = {
    TextLoss.EMPTY: (Level.CRITICAL, "without text"),
    TextLoss.NEARLY: (Level.CRITICAL, "with less than a tenth of their text"),
    TextLoss.REPLACED: (Level.CRITICAL, "with the same text as others that had texts of their own"),
    TextLoss.SHORTENED: (Level.SUPPORTING, "with less than half of their text"),
    TextLoss.MERGED: (Level.SUPPORTING, "with the same text as another that had a text of its own"),
    TextLoss.NEVER: (Level.ADVISORY, "without text, beside another that answers the same"),
}
"""How grave each loss is, and how it is told."""


@check(NAME, level=Level.CRITICAL, excusable=True, place=1)
def gold_text(exam: Exam) -> Iterator[Reason]:
    """Every gold card has its text: none is empty or has less than a tenth of it; a shortened one warns."""
    lost = lost_texts(exam.golden, exam.kb, exam.baseline, exam.vanished)
    for loss, (level, what) in _SAID.items():
        told = [entry for entry in lost if entry.loss == loss and unexcused(exam, NAME, entry.cases)]
        if told:
            cases = sorted({case for entry in told for case in unexcused(exam, NAME, entry.cases)})
            sentence = f"{counted(len(told), 'gold card')} {what}: {_cards(told)}, the answer of {named(cases)}"
            yield Reason(NAME, level, sentence, tuple(cases))


def offer(exam: Exam, how: str) -> str:
    """How a run is accepted, as it was worded; of a knowledge base that lost text what it lost instead, and no offer."""
    lost = lost_texts(exam.golden, exam.kb, exam.baseline, exam.vanished)
    gone = sorted({entry.card for entry in lost if _SAID[entry.loss][0] == Level.CRITICAL} | {v.card for v in exam.vanished})
    shrunken = shrinkage(exam.kb, exam.baseline)
    if gone:
        shrunken = f"{counted(len(gone), 'gold card')} without text or gone ({named(gone)})"
    return f"; look first at what is missing: {shrunken}" if shrunken else how


def _cards(told: Sequence[LostText]) -> str:
    """The first few cards, with what they have of what they had."""
    return named(entry.card if not entry.was else f"{entry.card} ({entry.now} of {entry.was} characters)" for entry in told)
