"""The model does not see that it answers."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory


@cause("embedding", after="side_effect")
def embedding(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The question and the card are too far apart for the model, though their words or meaning would meet in another lane."""
    if missing.stood or missing.gold not in lab.cards:
        return None
    ranking = lab.ask(missing.case)
    ranks = {lane: hits.rank(missing.gold) for lane, hits in ranking.lanes.items()}
    good = [lane for lane, rank in ranks.items() if rank is not None and rank <= lab.suite.top_k]
    if not good or len(ranks) < 2:
        return None
    ranked = ", ".join(f"{lane} {rank or 'not found'}" for lane, rank in ranks.items())
    return Confirmed(f"'{missing.gold}' stands at {ranked}: {good[0]} alone would have found it", (missing.gold,))
