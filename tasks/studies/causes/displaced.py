"""Others came and stand above it."""

from __future__ import annotations

from tasks.errors import named
from tasks.studies.causes import Confirmed, Missing, cause
from tasks.studies.laboratory import Laboratory
from tasks.studies.variants import Change


@cause("displaced", order=160)
def displaced(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """Documents that are new or changed since the baseline stand above the card."""
    above = newcomers_above(missing, lab)
    proof = smallest_removal(missing, lab, above)
    if proof:
        rank = lab.ask(missing.case, Change(frozenset(proof))).rank(missing.gold)
        return Confirmed(
            f"displaced by {named(above)}; without {named(proof)} '{missing.gold}' stands at {rank}",
            (*proof, *(card for card in above if card not in proof)),
        )
    return None


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
