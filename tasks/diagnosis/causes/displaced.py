"""Others came and stand above it."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.errors import named

_SMALL = 100
"""Culprits up to which each is tried for whether it can be spared."""


@cause("displaced", after="card_changed", verb="displaced by")
def displaced(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """Documents that are new or changed since the baseline stand above the card."""
    above = newcomers_above(missing, lab)
    proof = smallest_part(missing, lab, above)
    if not proof:
        return None
    rank = lab.ask(missing.case, lab.undone(proof)).rank(missing.gold)
    undone = "without them" if all(lab.is_new(card) for card in proof) else "without what is new, and changes undone,"
    others = len(above) - len(proof)
    more = f" ({others} more new or changed cards stand above it)" if others else ""
    return Confirmed(f"displaced by {named(proof)}{more}; {undone} '{missing.gold}' stands at {rank}", tuple(proof))


def newcomers_above(missing: Missing, lab: Laboratory) -> list[str]:
    """The new or changed cards that stand above the gold now, in rank order; none where the gold is not there to stand."""
    if missing.gold not in lab.cards:
        return []
    hits = lab.ask(missing.case).hits
    rank = hits.rank(missing.gold) or len(hits) + 1
    return [card for card in hits.ids[: rank - 1] if card in lab.newcomers and card != missing.gold]


def smallest_part(missing: Missing, lab: Laboratory, above: list[str]) -> list[str]:
    """The fewest of these cards that, new ones taken away and changed ones put back, bring the gold back; none where none do.

    Taking n cards away lifts a gold by about n places, so as many are tried first as it stands below the cut; then any that
    proves needless is left as it is: a card whose change did nothing is no culprit.
    """
    rank = lab.ask(missing.case).rank(missing.gold) or len(above) + lab.suite.top_k
    fewest = max(rank - lab.suite.top_k, 1)
    tried: list[str] = []
    for count in range(min(fewest, len(above)), len(above) + 1):
        if lab.brings_back(missing.case, missing.gold, lab.undone(above[:count])):
            tried = above[:count]
            break
    for card in tuple(tried) if len(tried) <= _SMALL else ():
        rest = [other for other in tried if other != card]
        if rest and lab.brings_back(missing.case, missing.gold, lab.undone(rest)):
            tried = rest
    return tried
