"""What filters hide and access lets through. Denominators are fixed before any filter: a filter cannot improve its figure."""

from __future__ import annotations

import math

from kbgate.tasks.metrics import Judged, metric


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
    unit="cards",
    monotone=False,
)
def leakage(case: Judged, k: int) -> float | None:
    """Number of cards returned that the asker is not entitled to; zero is the only good value."""
    return None if case.outside is None else float(case.outside)


@metric("gold_excluded", source="kbgate: filters and access", at_k=False, judges_gold=False, higher_is_better=False)
def gold_excluded(case: Judged, k: int) -> float | None:
    """Share of the gold cards its asker is entitled to that the case's filter removes."""
    if case.filtered_gold is None or not case.has_gold:
        return None
    gold = frozenset().union(*case.groups)
    return len(gold - case.filtered_gold) / len(gold)


@metric("predicate_precision", source="precision of a set of cards, Manning et al. 2008, chapter 8.3", at_k=False,
        judges_gold=False)  # fmt: skip
def predicate_precision(case: Judged, k: int) -> float | None:
    """Share of the cards its filter lets through that the right filter would let through; none if it lets none through."""
    return case.agreed / case.filtered if case.filtered and case.agreed is not None else None


@metric("predicate_recall", source="recall of a set of cards, Manning et al. 2008, chapter 8.3", at_k=False, judges_gold=False)
def predicate_recall(case: Judged, k: int) -> float | None:
    """Share of the cards the right filter would let through that its filter lets through; where that is labelled."""
    return case.agreed / case.intended if case.intended and case.agreed is not None else None
