"""The same words stand on many cards."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Container

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.diagnosis.variants import AS_IS, Change
from kbgate.tasks.domain import Card

SHARE, LEAST, SHORTEST = 0.1, 5, 20
"""A line is repeated when it stands on a tenth of the cards, and on at least five; shorter lines carry no meaning."""


@cause("repeated_text", after="mojibake")
def repeated_text(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The same lines were put on many cards, which all look alike now."""
    change = lab.once("repeated_text", lambda: _stripped(lab))
    if change is AS_IS or not lab.brings_back(missing.case, missing.gold, change):
        return None
    rank, line = lab.ask(missing.case, change).rank(missing.gold), change.about[:60]
    return Confirmed(
        f"{len(change.gone)} cards carry the same line ('{line}'); without it '{missing.gold}' stands at {rank}", (line,)
    )


def repeated_lines(texts: list[str]) -> dict[str, int]:
    """Lines that stand on many cards, with how many."""
    counts = Counter(line for text in texts for line in {line.strip() for line in text.split("\n")} if len(line) >= SHORTEST)
    return {line: count for line, count in counts.most_common() if count >= max(LEAST, SHARE * len(texts))}


def _stripped(lab: Laboratory) -> Change:
    """Every card without the lines that are repeated, about the commonest of them; as it is where there are none.

    A line that stood on a card at the baseline was there before, and is no cause of a fall; what only new
    cards share is theirs, and they are named by themselves.
    """
    lines = repeated_lines([card.text for name, card in lab.cards.items() if not lab.baseline_hashes or not lab.is_new(name)])
    then = (card if lab.is_as_it_was(name) else lab.as_it_was(name) for name, card in lab.cards.items())
    before = {line.strip() for card in then if card for line in card.text.split("\n")}
    new = [line for line in lines if line not in before]
    cards = [stripped for card in lab.cards.values() if (stripped := _without(card, frozenset(new))) is not None]
    return lab.replaced(*cards, about=new[0]) if cards else AS_IS


def _without(card: Card, lines: Container[str]) -> Card | None:
    """A card without these lines; None where it has none of them, or nothing else."""
    kept = [line for line in card.text.split("\n") if line.strip() not in lines]
    text = "\n".join(kept).strip()
    return dataclasses.replace(card, text=text) if text and text != card.text.strip() else None
