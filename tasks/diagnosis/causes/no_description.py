"""A table or a figure without words."""

from __future__ import annotations

import dataclasses
import re

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.causes.table_header import has_table
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.domain import Card

_FIGURE = re.compile(r"!\[|<img\b|<table\b|<figure\b", re.IGNORECASE)


def needs_description(text: str) -> bool:
    """Whether a text holds a table or a figure, whose numbers say little to whoever asks in words."""
    return has_table(text) or bool(_FIGURE.search(text))


def lost_description(old: Card, now: Card) -> bool:
    """Whether a card had a description and has none."""
    return bool(old.description.strip()) and not now.description.strip()


@cause("no_description", after="chunk_split", changed=("card",))
def no_description(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card's table or figure has no description."""
    if missing.gold not in lab.cards:
        return None
    card, old = lab.cards[missing.gold], lab.as_it_was(missing.gold)
    if card.description.strip():
        return None
    if old is not None and lost_description(old, card):
        change = lab.replaced(dataclasses.replace(card, description=old.description))
        if not lab.brings_back(missing.case, missing.gold, change):
            return None
        rank = lab.ask(missing.case, change).rank(missing.gold)
        return Confirmed(f"'{missing.gold}' lost its description; with it, it stands at {rank}", (missing.gold,))
    if missing.stood or not needs_description(card.text):
        return None
    # Words that the question itself brings are the best description there can be: what they cannot lift, none would.
    change = lab.replaced(dataclasses.replace(card, description=lab.cases[missing.case].query))
    if not lab.brings_back(missing.case, missing.gold, change):
        return None
    sentence = (
        f"'{missing.gold}' holds a table or figure without a description; with one in the words of the question it would rank"
    )
    return Confirmed(sentence, (missing.gold,), proven=False)
