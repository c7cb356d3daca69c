"""The gold is not valid at the time of the exam."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import VALIDITY, Laboratory
from kbgate.tasks.predicates import is_over


@cause("validity", after="no_description")
def validity(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card is expired or not yet valid."""
    if missing.gold not in lab.cards or VALIDITY not in lab.hides(missing.case, missing.gold):
        return None
    start, end = lab.cards[missing.gold].valid_from, lab.cards[missing.gold].valid_until
    dates = f"expired on {end}" if is_over(lab.cards[missing.gold], lab.as_of) else f"is valid from {start} on only"
    lift = frozenset({VALIDITY})
    rank = lab.ask(missing.case, lift=lift).rank(missing.gold)
    sentence = f"'{missing.gold}' {dates}; asked whatever the day, it stands at {rank or 'no rank'}"
    return Confirmed(sentence, (missing.gold,), lab.brings_back(missing.case, missing.gold, lift=lift))
