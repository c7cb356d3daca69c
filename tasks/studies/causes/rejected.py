"""The gold did not get in."""

from __future__ import annotations

from tasks.studies.causes import Confirmed, Missing, cause
from tasks.studies.causes.removed import put_back
from tasks.studies.laboratory import Laboratory


@cause("rejected", order=20)
def rejected(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card was rejected when it was read."""
    problem = lab.inputs.kb.rejected.get(missing.gold)
    if problem is None or missing.gold in lab.cards:
        return None
    return put_back(missing, lab, f"'{missing.gold}' was rejected at {problem}")
