"""Others came and stand above it."""

from __future__ import annotations

from collections.abc import Callable

from tasks.errors import named
from tasks.studies.causes import Confirmed, Missing, cause
from tasks.studies.laboratory import Laboratory
from tasks.studies.variants import Change


@cause("displaced", order=160)
def displaced(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """Documents that are new or changed since the baseline stand above the card."""
    above = newcomers_above(missing, lab)
    if not lab.came - {missing.gold}:
        return None
    proof = smallest_removal(missing, lab, above)
    if proof:
        rank = lab.ask(missing.case, Change(frozenset(proof))).rank(missing.gold)
        return Confirmed(
            f"displaced by {named(above)}; without {named(proof)} '{missing.gold}' stands at {rank}",
            (*proof, *(card for card in above if card not in proof)),
        )
    # Nobody above it can be blamed alone: words that came with the others may weigh differently now.
    came = sorted(lab.came - {missing.gold})
    if not lab.brings_back(missing.case, missing.gold, Change(frozenset(came))):
        return None
    proof = least_that(came, lambda cards: lab.brings_back(missing.case, missing.gold, Change(frozenset(cards))))
    rank = lab.ask(missing.case, Change(frozenset(proof))).rank(missing.gold)
    return Confirmed(
        f"without {named(proof)} '{missing.gold}' stands at {rank}, though not all of them stand above it", tuple(proof)
    )


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


def newcomers_above(missing: Missing, lab: Laboratory) -> list[str]:
    """The new or changed cards that stand above the gold now, in rank order."""
    ranking = [card for card, _ in lab.ask(missing.case).hits]
    place = ranking.index(missing.gold) if missing.gold in ranking else len(ranking)
    return [card for card in ranking[:place] if card in lab.came and card != missing.gold]


def smallest_removal(missing: Missing, lab: Laboratory, above: list[str]) -> list[str]:
    """The fewest of these cards whose removal brings the gold back; none where not even all of them do.

    Taking n cards away lifts a gold by about n places, so as many are tried first as it stands below the cut; then any that
    proves needless is put back.
    """
    rank = lab.ask(missing.case).rank(missing.gold) or len(above) + lab.suite.top_k
    fewest = max(rank - lab.suite.top_k, 1)
    for count in range(min(fewest, len(above)), len(above) + 1):
        tried = above[:count]
        if tried and lab.brings_back(missing.case, missing.gold, Change(frozenset(tried))):
            break
    else:
        return []
    for card in list(tried) if len(tried) <= _SMALL else []:
        rest = [other for other in tried if other != card]
        if rest and lab.brings_back(missing.case, missing.gold, Change(frozenset(rest))):
            tried = rest
    return tried


_SMALL = 30
_FINEST = 64
