"""The gold is not valid on the day."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import VALIDITY, Laboratory


@cause("validity", after="no_description")
def validity(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card is expired or not yet valid."""
    if missing.gold not in lab.cards or VALIDITY not in lab.hides(missing.case, missing.gold):
        return None
    start, end = lab.cards[missing.gold].valid_from, lab.cards[missing.gold].valid_until
    dates = f"expired on {end}" if end and end < lab.as_of.date() else f"is valid from {start} on only"
    lift = frozenset({VALIDITY})
    rank = lab.ask(missing.case, lift=lift).rank(missing.gold)
    sentence = f"'{missing.gold}' {dates}; asked whatever the day, it stands at {rank or 'no rank'}"
    return Confirmed(sentence, (missing.gold,), lab.brings_back(missing.case, missing.gold, lift=lift))
