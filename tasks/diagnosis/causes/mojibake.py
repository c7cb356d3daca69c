"""The gold's letters are broken."""

from __future__ import annotations

import dataclasses

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.domain import Card


@cause("mojibake", after="settings", changed=("card",))
def mojibake(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card's text was decoded with the wrong character set."""
    if missing.gold not in lab.cards or not is_broken(lab.cards[missing.gold]):
        return None
    old = lab.as_it_was(missing.gold)
    if missing.stood and old is not None and is_broken(old):
        return None
    card = lab.cards[missing.gold]
    mended = _mended(card)
    change = lab.replaced(mended)
    if not lab.brings_back(missing.case, missing.gold, change):
        return None
    texts = (
        ("title", card.title, mended.title),
        ("description", card.description, mended.description),
        ("text", card.text, mended.text),
    )
    name, broken, whole = next(text for text in texts if text[1] != text[2])
    place = next(at for at, (one, other) in enumerate(zip(broken, whole, strict=False)) if one != other)
    shown = broken[max(place - 10, 0) : place + 10].replace("\n", " ")
    rank = lab.ask(missing.case, change).rank(missing.gold)
    return Confirmed(
        f"the {name} of '{missing.gold}' was decoded wrongly ('{shown}'); mended, it stands at {rank}", (missing.gold,)
    )


def is_broken(card: Card) -> bool:
    """Whether a card's texts were decoded with the wrong character set."""
    return _mended(card) != card


def _mended(card: Card) -> Card:
    from ftfy import fix_encoding

    return dataclasses.replace(
        card,
        title=fix_encoding(card.title),
        description=fix_encoding(card.description),
        text=fix_encoding(card.text),
    )
