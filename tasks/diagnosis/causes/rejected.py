"""The gold did not get in."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.causes.removed import put_back
from kbgate.tasks.diagnosis.laboratory import Laboratory


@cause("rejected", after="removed")
def rejected(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card was rejected when it was read."""
    problem = lab.inputs.kb.refusal(missing.gold)
    if problem is None or missing.gold in lab.cards:
        return None
    return put_back(missing, lab, f"'{missing.gold}' was rejected at {problem}")
