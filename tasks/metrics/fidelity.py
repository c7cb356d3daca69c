"""What the approximate index loses of what exact search over the same vectors finds."""

from __future__ import annotations

from kbgate.tasks.metrics import Judged, metric


@metric(
    "fidelity",
    source="recall of an index against exact search, as in ANN-Benchmarks",
    at_candidates=True,
    monotone=False,
    judges_gold=False,
)
def fidelity(case: Judged, k: int) -> float | None:
    """Share of the exact search's top k that the approximate index has in its top k too; 1 for a method without one."""
    if case.failed:
        return 0.0
    best = case.exact[:k]
    return len(set(best) & set(case.approximate[:k])) / len(best) if best else None
