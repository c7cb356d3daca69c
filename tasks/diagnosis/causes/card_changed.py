"""The gold was rewritten."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory

_SHOWN = ("title", "text", "description", "language", "domain", "topics", "tier", "valid_from", "valid_until", "metadata")


@cause("card_changed", after="lost_by_index", changed=("card",), of_evidence=True)
def card_changed(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card was edited; as it was, it would rank."""
    old = lab.as_it_was(missing.gold)
    if old is None or missing.gold not in lab.cards:
        return None
    now = lab.cards[missing.gold]
    parts = [name for name in _SHOWN if getattr(now, name) != getattr(old, name)]
    if missing.excerpt and missing.excerpt in old.text:
        return Confirmed(f"the evidence was edited out of '{missing.gold}'", (missing.gold,))
    change = lab.replaced(old)
    if not lab.brings_back(missing.case, missing.gold, change):
        return None
    rank = lab.ask(missing.case, change).rank(missing.gold)
    return Confirmed(f"'{missing.gold}' was edited ({', '.join(parts)}); as it was, it stands at {rank}", (missing.gold,))
