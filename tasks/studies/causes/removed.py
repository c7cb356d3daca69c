"""The gold is gone."""

from __future__ import annotations

from tasks.studies.causes import Confirmed, Missing, cause
from tasks.studies.laboratory import Laboratory


@cause("removed", order=10)
def removed(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card was removed from the knowledge base."""
    if missing.gold in lab.cards or missing.gold in lab.inputs.kb.rejected:
        return None
    old = lab.as_it_was(missing.gold)
    if old is None:
        return Confirmed(f"'{missing.gold}' is no longer in the knowledge base", (missing.gold,))
    rank = lab.ask(missing.case, lab.replaced(old)).rank(missing.gold)
    return Confirmed(
        f"'{missing.gold}' is no longer in the knowledge base; put back, it stands at {rank or 'no rank'}", (missing.gold,)
    )
