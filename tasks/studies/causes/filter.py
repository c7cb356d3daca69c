"""The filter hides the gold."""

from __future__ import annotations

from tasks.records import canonical
from tasks.studies.causes import Confirmed, Missing, cause
from tasks.studies.laboratory import FILTER, Laboratory


@cause("filter", order=120, changed=("case", "kb"))
def filter_(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The question's filter excludes the card that answers it."""
    written = lab.cases[missing.case]["filter"]
    if missing.gold not in lab.cards or FILTER not in lab.hides(missing.case, missing.gold):
        return None
    lift = frozenset({FILTER})
    rank = lab.ask(missing.case, lift=lift).rank(missing.gold)
    sentence = f"the filter {canonical(written)} excludes '{missing.gold}'; lifted, it stands at {rank or 'no rank'}"
    return Confirmed(sentence, (missing.case, missing.gold), lab.brings_back(missing.case, missing.gold, lift=lift))
