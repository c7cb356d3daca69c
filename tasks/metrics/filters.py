"""What filters hide and access lets through. Denominators are fixed before any filter: a filter cannot improve its figure."""

from __future__ import annotations

import math

from tasks.domain import Judged
from tasks.registry import metric


@metric("false_exclusion", source="kbgate: filters and access", at_k=False, judges_gold=False, higher_is_better=False)
def false_exclusion(case: Judged, k: int) -> float | None:
    """1 if the case's filter removes all the gold its asker is entitled to, else 0."""
    if case.filtered_gold is None or not case.has_gold:
        return None
    return float(not case.filtered_gold)


@metric(
    "leakage",
    source="kbgate: filters and access",
    at_k=False,
    judges_gold=False,
    higher_is_better=False,
    high=math.inf,
    monotone=False,
)
def leakage(case: Judged, k: int) -> float | None:
    """Number of cards returned that the asker is not entitled to; zero is the only good value."""
    return None if case.outside is None else float(case.outside)
