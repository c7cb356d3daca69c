"""Faults of single cards: what an ingest, a migration or an editor does to them."""

from __future__ import annotations

import dataclasses
import datetime as dt
from random import Random

from kbgate.tasks.diagnosis.causes.table_header import has_table
from kbgate.tasks.studies.faults import BAD_INPUT, Copy, Spoiled, any_card, fault


@fault("dropped", causes=("removed",))
def dropped(copy: Copy, draw: Random) -> Spoiled | None:
    """A card is no longer there."""
    card = any_card(copy, draw)
    copy.cards.remove(card)
    return _of(card.id)


@fault("emptied", causes=("text_lost", "removed"))
def emptied(copy: Copy, draw: Random) -> Spoiled | None:
    """A card keeps its title and loses its text."""
    card = any_card(copy, draw)
    if not card.title.strip():
        return None
    copy.edit(card, dataclasses.replace(card, text=""))
    return _of(card.id)


@fault("truncated", causes=("text_lost",))
def truncated(copy: Copy, draw: Random) -> Spoiled | None:
    """A card keeps the first fifth of its text."""
    card = any_card(copy, draw)
    text = card.text[: len(card.text) // 5]
    copy.edit(card, dataclasses.replace(card, text=text))
    return _of(card.id) if text.strip() else None


@fault("mojibake", causes=("mojibake",))
def mojibake(copy: Copy, draw: Random) -> Spoiled | None:
    """A card's UTF-8 is read as Latin-1."""
    card = any_card(copy, draw)
    title, text, description = (words.encode().decode("latin-1") for words in (card.title, card.text, card.description))
    copy.edit(card, dataclasses.replace(card, title=title, text=text, description=description))
    return _of(card.id) if text != card.text else None


@fault("table cut", causes=("table_header",))
def table_cut(copy: Copy, draw: Random) -> Spoiled | None:
    """A card's table loses the lines above its first row, its header among them."""
    tables = [card for card in copy.cards if has_table(card.text) and "|--" in card.text.replace(" ", "")]
    if not tables:
        return None
    card = draw.choice(tables)
    lines = card.text.split("\n")
    rule = next(place for place, line in enumerate(lines) if "|--" in line.replace(" ", ""))
    copy.edit(card, dataclasses.replace(card, text="\n".join(lines[rule + 1 :])))
    return _of(card.id)


@fault("description removed", causes=("no_description",))
def description_removed(copy: Copy, draw: Random) -> Spoiled | None:
    """A card loses its description."""
    described = [card for card in copy.cards if card.description.strip()]
    if not described:
        return None
    card = draw.choice(described)
    copy.edit(card, dataclasses.replace(card, description=""))
    return _of(card.id)


@fault("label wrong", causes=("label",))
def label_wrong(copy: Copy, draw: Random) -> Spoiled | None:
    """A card gets another card's domain and loses its topics."""
    card, other = any_card(copy, draw), draw.choice(copy.cards)
    if not card.domain or card.domain == other.domain:
        return None
    copy.edit(card, dataclasses.replace(card, domain=other.domain, topics=()))
    return _of(card.id)


@fault("expired", causes=("validity",))
def expired(copy: Copy, draw: Random) -> Spoiled | None:
    """A card is valid until yesterday."""
    card = any_card(copy, draw)
    yesterday = dt.date.fromisoformat(copy.day) - dt.timedelta(days=1)
    copy.edit(card, dataclasses.replace(card, valid_from="", valid_until=yesterday.isoformat()))
    return _of(card.id)


@fault("malformed", causes=(BAD_INPUT, "rejected"))
def malformed(copy: Copy, draw: Random) -> Spoiled | None:
    """A card's date is none."""
    card = any_card(copy, draw)
    copy.written[card.id] = {"valid_from": "soon"}
    return Spoiled(card.id)


@fault("duplicate id", causes=(BAD_INPUT, "rejected"))
def duplicate_id(copy: Copy, draw: Random) -> Spoiled | None:
    """Two cards bear one id."""
    card, other = draw.sample(copy.cards, 2)
    copy.edit(card, dataclasses.replace(card, id=other.id))
    return _of(other.id)


def _of(card: str) -> Spoiled:
    return Spoiled(card, (card,))
