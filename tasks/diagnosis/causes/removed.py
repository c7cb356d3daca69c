"""The gold is gone."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory


@cause("removed")
def removed(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card was removed from the knowledge base."""
    if missing.gold in lab.cards or lab.inputs.kb.refusal(missing.gold):
        return None
    return put_back(missing, lab, f"'{missing.gold}' is no longer in the knowledge base")


def put_back(missing: Missing, lab: Laboratory, sentence: str) -> Confirmed:
    """What is gone, put back: proven where it then stands in the top k."""
    old = lab.as_it_was(missing.gold)
    if old is None:
        return Confirmed(f"{sentence}; not proven: what it was {lab.not_kept}", (missing.gold,), proven=False)
    change = lab.replaced(old)
    rank = lab.ask(missing.case, change).rank(missing.gold)
    outcome = f"{sentence}; put back, it stands at {rank or 'no rank'}"
    return Confirmed(outcome, (missing.gold,), lab.brings_back(missing.case, missing.gold, change))
