"""The gold has less text than it had."""

from __future__ import annotations

import dataclasses

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.domain import Card

_SHORTER = 0.9


def lost_text(old: Card, now: Card) -> bool:
    """Whether a card has markedly less text than it had."""
    return len(now.text) <= _SHORTER * len(old.text)


@cause("text_lost", after="table_header", changed=("card",), of_evidence=True)
def text_lost(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card lost text: it was emptied or cut short."""
    if missing.gold not in lab.cards:
        return None
    old, now = lab.as_it_was(missing.gold), lab.cards[missing.gold]
    if old is None:
        sentence = f"'{missing.gold}' has no text; not proven: its earlier text {lab.not_kept}"
        return None if now.text.strip() else Confirmed(sentence, (missing.gold,), proven=False)
    lengths = f"'{missing.gold}' had {len(old.text)} characters and has {len(now.text)}"
    if not lost_text(old, now):
        return None
    if missing.excerpt and missing.excerpt in old.text:
        return Confirmed(f"{lengths}; the evidence stood in what is gone", (missing.gold,))
    change = lab.replaced(dataclasses.replace(now, text=old.text))
    if not lab.brings_back(missing.case, missing.gold, change):
        return None
    return Confirmed(f"{lengths}; whole, it stands at {lab.ask(missing.case, change).rank(missing.gold)}", (missing.gold,))
