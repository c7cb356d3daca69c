"""How far the rankings drifted from those the baseline accepted; advice, not quality."""

from __future__ import annotations

from kbgate.tasks.metrics import Judged, metric


@metric("stability", source="Jaccard 1912, over the top k", judges_gold=False, monotone=False, stored=False)
def stability(case: Judged, k: int) -> float | None:
    """Jaccard similarity of the top k with the baseline's; defined down to the baseline's own depth."""
    if case.accepted is None or k > len(case.accepted):
        return None
    now, then = set(case.ranking[:k]), set(case.accepted[:k])
    return len(now & then) / len(now | then)


@metric("top1_agreement", source="kbgate: drift", at_k=False, judges_gold=False, monotone=False, stored=False)
def top1_agreement(case: Judged, k: int) -> float | None:
    """1 if the first card is the baseline's first card, else 0."""
    return float(case.ranking[:1] == case.accepted[:1]) if case.accepted else None
