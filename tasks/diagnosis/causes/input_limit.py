"""What answers stands beyond what the model reads."""

from __future__ import annotations

import dataclasses

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.diagnosis.truncation import cut_off
from kbgate.tasks.settings import Chunking


@cause("input_limit", after="filter", changed=("card", "chunking", "embedding"))
def input_limit(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The model cuts off the part of the card that answers."""
    if missing.gold not in lab.cards:
        return None
    limit, tails = cut_off(lab.material.model, lab.suite.embedding.passage_prefix, lab.texts_of(missing.gold))
    if not any(tails):
        return None
    unread = "\n\n".join(tail for tail in tails if tail)
    # Cut as kbgate cuts by itself: in one piece the model would not read it to its end either.
    card = dataclasses.replace(lab.cards[missing.gold], title="", description="", text=unread)
    change = lab.added(card, chunking=Chunking())
    if not lab.brings_back(missing.case, missing.gold, change):
        return None
    rank = lab.ask(missing.case, change).rank(missing.gold)
    lost = sum(len(tail) for tail in tails)
    return Confirmed(
        f"the model reads {limit} tokens of a chunk and drops {lost} characters of '{missing.gold}'; "
        f"with them as chunks of their own it stands at {rank}",
        (missing.gold,),
    )
