"""The same words stand on many cards."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.diagnosis.variants import Change

SHARE, LEAST, SHORTEST = 0.1, 5, 20
"""A line is repeated when it stands on a tenth of the cards, and on at least five; shorter lines carry no meaning."""


@cause("repeated_text", order=50)
def repeated_text(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The same lines were put on many cards, which all look alike now."""
    line, change = lab.once("repeated_text", lambda: _stripped(lab))
    if change is None or not lab.brings_back(missing.case, missing.gold, change):
        return None
    rank = lab.ask(missing.case, change).rank(missing.gold)
    return Confirmed(
        f"{len(change.gone)} cards carry the same line ('{line[:60]}'); without it '{missing.gold}' stands at {rank}",
        (line[:60],),
    )


def repeated_lines(texts: list[str]) -> dict[str, int]:
    """Lines that stand on many cards, with how many."""
    found = Counter(line for text in texts for line in {line.strip() for line in text.split("\n")} if len(line) >= SHORTEST)
    return {line: count for line, count in found.most_common() if count >= max(LEAST, SHARE * len(texts))}


def _stripped(lab: Laboratory) -> tuple[str, Change | None]:
    """The commonest repeated line, and every card without the repeated ones.

    A line that stood on a card at the baseline was there before, and is no cause of a fall; what only new
    cards share is theirs, and they are named by themselves.
    """
    known = [card["text"] for name, card in lab.cards.items() if not lab.known_then or name in lab.known_then]
    lines = repeated_lines(known)
    then = (lab.cards[name] if lab.is_as_it_was(name) else lab.as_it_was(name) for name in lab.cards)
    before = {line.strip() for card in then if card for line in card["text"].split("\n")}
    lines = {line: count for line, count in lines.items() if line not in before}
    cards = [card for card in (_without(row, lines) for row in lab.cards.values()) if card is not None]
    return next(iter(lines), ""), lab.replaced(*cards) if cards else None


def _without(card: dict[str, Any], lines: dict[str, int]) -> dict[str, Any] | None:
    kept = [line for line in card["text"].split("\n") if line.strip() not in lines]
    text = "\n".join(kept).strip()
    return {**card, "text": text} if text and text != card["text"].strip() else None
