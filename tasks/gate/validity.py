"""On which day were cards valid?"""

from __future__ import annotations

from collections.abc import Iterator

from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.errors import counted, named
from kbgate.tasks.gate import check
from kbgate.tasks.predicates import valid_cards


@check("pinned_day", level=Level.ADVISORY)
def pinned_day(exam: Exam) -> Iterator[Reason]:
    """Validity is judged on the day of the run; where another one is pinned, the cards it makes a difference to are named."""
    clock = exam.clock
    if clock.as_of.date() == clock.today:
        return
    differs = sorted(valid_cards(exam.kb.cards, clock.as_of) ^ valid_cards(exam.kb.cards, clock.now))
    cards = f"{counted(len(differs), 'card')} differ by it: {named(differs)}" if differs else "no card differs by it"
    sentence = f"validity was judged on {clock.as_of.date()}, which as_of pins, not on {clock.today}; {cards}"
    yield Reason("pinned_day", Level.ADVISORY, sentence)
