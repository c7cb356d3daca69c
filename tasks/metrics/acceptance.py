"""The supply contract of a case: is what a correct answer needs there."""

from __future__ import annotations

from tasks.domain import Judged
from tasks.metrics.ranking import contract
from tasks.registry import metric

PASS = 0.9
"""The share of its groups a case must find before its quality is above 0."""


@metric("quality", source="kbgate's supply contract")
def quality(case: Judged, k: int) -> float | None:
    """0 below a contract of 0.90, then rising in a straight line to 1 at a contract of 1."""
    found = contract.compute(case, k)
    if found is None:
        return None
    return max(0.0, (round(found, 6) - PASS) * 10)
