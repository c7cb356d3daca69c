"""Faults of what comes in: copies, newer documents, boilerplate."""

from __future__ import annotations

import dataclasses
import re
from random import Random

from kbgate.tasks.domain import Card
from kbgate.tasks.studies.faults import Copy, Spoiled, any_card, fault

COPIES = 10


@fault("near-copies", causes=("displaced", "side_effect"))
def near_copies(copy: Copy, draw: Random) -> Spoiled | None:
    """Ten near-copies of a card are ingested beside it."""
    card = any_card(copy, draw)
    copies = [_beside(card, f"copy{number}", f"{card.text}\n\nRevision {number}.") for number in range(1, COPIES + 1)]
    copy.cards += copies
    return Spoiled(card.id, tuple(other.id for other in copies))


@fault("newer document", causes=("displaced", "side_effect"))
def newer_document(copy: Copy, draw: Random) -> Spoiled | None:
    """Newer documents on a card's subject are ingested beside it, in its own sentences but another order."""
    card = any_card(copy, draw)
    sentences = [part for part in re.split(r"(?<=[.!?])\s+", card.text) if part.strip()]
    if len(sentences) < 3:
        return None
    newer = []
    for number in range(1, 4):
        draw.shuffle(sentences)
        newer.append(_beside(card, f"newer{number}", " ".join(sentences[: max(len(sentences) * 2 // 3, 2)])))
    copy.cards += newer
    return Spoiled(card.id, tuple(other.id for other in newer))


@fault("footer", causes=("repeated_text",))
def footer(copy: Copy, draw: Random) -> Spoiled | None:
    """The same lines, in the words of some card, are put on every card."""
    source = any_card(copy, draw)
    words = " ".join(source.text.split())[:300]
    if len(words) < 40:
        return None
    copy.cards = [
        dataclasses.replace(card, text=f"{words}\n\n{card.text}") if draw.random() < 0.9 else card for card in copy.cards
    ]
    return Spoiled(f"every card, in the words of {source.id}")


def _beside(card: Card, name: str, text: str) -> Card:
    return dataclasses.replace(card, id=f"{card.id}-{name}", text=text, tier="")
