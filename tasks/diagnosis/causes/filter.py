"""The filter hides the gold."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import FILTER, Laboratory
from kbgate.tasks.records import canonical


@cause("filter", after="label", changed=("case", "kb"))
def filter_(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The question's filter excludes the card that answers it."""
    written = lab.cases[missing.case].filter
    if missing.gold not in lab.cards or FILTER not in lab.hides(missing.case, missing.gold):
        return None
    lift = frozenset({FILTER})
    rank = lab.ask(missing.case, lift=lift).rank(missing.gold)
    sentence = f"the filter {canonical(written)} excludes '{missing.gold}'; lifted, it stands at {rank or 'no rank'}"
    return Confirmed(sentence, (missing.case, missing.gold), lab.brings_back(missing.case, missing.gold, lift=lift))
