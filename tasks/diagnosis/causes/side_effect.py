"""Something happened to another card, and this one moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.causes.mojibake import is_broken
from kbgate.tasks.diagnosis.causes.no_description import lost_description
from kbgate.tasks.diagnosis.causes.table_header import lost_its_header
from kbgate.tasks.diagnosis.causes.text_lost import lost_text
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.domain import Card
from kbgate.tasks.errors import named
from kbgate.tasks.predicates import is_early, is_over, store_fields
from kbgate.tasks.tables import Value

_MOST = 500
"""Changed cards among which the few that matter are searched for."""
_FINEST = 64
"""Parts that many changes are cut into before the search for the fewest gives up."""
_KIN = 0.6
"""Cosine similarity to the gold from which on a new card is named for shifting its words; others came by chance."""


@cause("side_effect", after="displaced")
def side_effect(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """A change of another card moved it: ranks and the weights of words hang together."""
    others = sorted((lab.newcomers | lab.removed) - {missing.gold})
    if not missing.stood or not others or not lab.brings_back(missing.case, missing.gold, lab.undone(others)):
        return None
    if len(others) > _MOST:
        rank = lab.ask(missing.case, lab.undone(others)).rank(missing.gold)
        undone = f"with all {len(others)} changes since the baseline undone '{missing.gold}' stands at {rank}"
        return Confirmed(f"{undone}; they are too many to search for the few that did it")
    proof = least_that(others, lambda cards: lab.brings_back(missing.case, missing.gold, lab.undone(cards)))
    return _words_shifted(missing, lab, proof) if all(lab.is_new(card) for card in proof) else _moved(missing, lab, proof)


def _words_shifted(missing: Missing, lab: Laboratory, proof: list[str]) -> Confirmed:
    """New cards that do not stand above the gold, and still moved it."""
    rank = lab.ask(missing.case, lab.undone(proof)).rank(missing.gold)
    kin = [card for card in proof if lab.similarity(missing.gold, card) >= _KIN]
    cards = f"{named(kin)} and others" if kin and len(kin) < len(proof) else named(kin) if kin else "the cards that are new"
    sentence = f"without {cards} '{missing.gold}' stands at {rank}, though they do not stand above it"
    return Confirmed(f"{sentence}: they change how much each word weighs", tuple(kin))


def _moved(missing: Missing, lab: Laboratory, proof: list[str]) -> Confirmed:
    """Cards that were changed or taken away, each with what happened to it."""
    rank = lab.ask(missing.case, lab.undone(proof)).rank(missing.gold)
    happened = {card: what_happened(lab, card) for card in proof}
    cards = ", ".join(f"'{card}' ({happened[card].replace('_', ' ')})" for card in proof[:3])
    more = " and others" if proof[3:] else ""
    return Confirmed(
        f"moved by what happened to {cards}{more}; with that undone '{missing.gold}' stands at {rank}",
        tuple(proof),
        cause=happened[proof[0]],
    )


def what_happened(lab: Laboratory, card: str) -> str:
    """The cause that a card's change would be named by, if the card itself were missed."""
    if card not in lab.cards:
        return "rejected" if lab.inputs.kb.refusal(card) else "removed"
    now, old = lab.cards[card], lab.as_it_was(card)
    if card not in lab.baseline_hashes:
        return "displaced"
    if is_over(now, lab.as_of) or is_early(now, lab.as_of):
        return "validity"
    if is_broken(now):
        return "mojibake"
    if old is None:
        return "card_changed"
    signs: Mapping[str, Callable[[Card, Card], bool]] = {
        "table_header": lost_its_header,
        "text_lost": lost_text,
        "no_description": lost_description,
        "label": lambda was, row: _labels(lab, was) != _labels(lab, row),
    }
    return next((name for name, sign in signs.items() if sign(old, now)), "card_changed")


def _labels(lab: Laboratory, card: Card) -> dict[str, Value]:
    return store_fields(card, lab.suite.kb.filterable)


def least_that(cards: list[str], does: Callable[[list[str]], bool]) -> list[str]:
    """A part of the cards that still does it and of which no half and, while few, no single card can be spared.

    Delta debugging: Zeller & Hildebrandt 2002.
    """
    parts = 2
    while len(cards) > 1:
        size = max(len(cards) // parts, 1)
        pieces = [cards[at : at + size] for at in range(0, len(cards), size)]
        rests = ([card for card in cards if card not in piece] for piece in pieces)
        smaller = next((part for part in (*pieces, *rests) if part and len(part) < len(cards) and does(part)), None)
        if smaller is not None:
            cards, parts = smaller, max(parts - 1, 2)
        elif size == 1 or parts >= _FINEST:
            break
        else:
            parts *= 2
    return cards
