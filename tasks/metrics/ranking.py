"""How well one ranking answers one case. G: gold cards; R: relevant cards; both only what the asker is entitled to."""

from __future__ import annotations

import math

from kbgate.tasks.metrics import Judged, metric

MANNING = "Manning, Raghavan & Schütze 2008, chapter 8"


@metric("hit", source="Success@k of trec_eval")
def hit(case: Judged, k: int) -> float | None:
    """1 if any gold card is in the top k, else 0."""
    if not case.has_gold:
        return None
    gold = frozenset().union(*case.groups)
    return float(not gold.isdisjoint(case.ranking[:k]))


@metric("contract", source="kbgate's supply contract")
def contract(case: Judged, k: int) -> float | None:
    """Share of the gold groups with at least one card in the top k: what a correct answer needs and got.

    Equals hit@k where one card of several suffices, recall@k where every card is needed.
    """
    if not case.has_gold:
        return None
    top = case.ranking[:k]
    return sum(not group.isdisjoint(top) for group in case.groups) / len(case.groups)


@metric("recall", source=f"{MANNING}.3")
def recall(case: Judged, k: int) -> float | None:
    """Share of the relevant cards found in the top k; a conservative lower bound where one of several suffices."""
    if not case.has_gold or not case.grades:
        return None
    return sum(card in case.grades for card in case.ranking[:k]) / len(case.grades)


@metric("ndcg", source="Järvelin & Kekäläinen 2002, linear gain as in trec_eval's ndcg_cut")
def ndcg(case: Judged, k: int) -> float | None:
    """Graded relevance down to rank k, discounted by log2(rank + 1), over the best such ranking."""
    if not case.has_gold or not case.grades:
        return None
    gains = [case.grades.get(card, 0.0) for card in case.ranking[:k]]
    ideal = sorted(case.grades.values(), reverse=True)[:k]
    return _discounted(gains) / _discounted(ideal)


def _discounted(gains: list[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


@metric("precision", source=f"{MANNING}.4")
def precision(case: Judged, k: int) -> float | None:
    """Share of the top k that is relevant, over k also where fewer came back."""
    if not case.has_gold or not case.grades:
        return None
    return sum(card in case.grades for card in case.ranking[:k]) / k


@metric("mrr", source="Voorhees 1999, recip_rank of trec_eval, cut at k")
def mrr(case: Judged, k: int) -> float | None:
    """Reciprocal rank of the first relevant card in the top k, 0 if there is none."""
    if not case.has_gold or not case.grades:
        return None
    return next((1 / rank for rank, card in enumerate(case.ranking[:k], start=1) if card in case.grades), 0.0)


@metric("map", source=f"{MANNING}.4, map_cut of trec_eval")
def average_precision(case: Judged, k: int) -> float | None:
    """Mean of the precision at each relevant card in the top k, over all relevant cards."""
    if not case.has_gold or not case.grades:
        return None
    relevant, total = 0, 0.0
    for rank, card in enumerate(case.ranking[:k], start=1):
        if card in case.grades:
            relevant += 1
            total += relevant / rank
    return total / len(case.grades)


@metric("hit_any_language", source="kbgate: translations of a card share a concept")
def hit_any_language(case: Judged, k: int) -> float | None:
    """1 if a gold card or a translation of one is in the top k: the knowledge was found, if not in the asker's language."""
    return float(not case.family.isdisjoint(case.ranking[:k])) if case.has_gold else None


@metric("tier_rr", source="kbgate's supply contract", monotone=False)
def tier_rr(case: Judged, k: int) -> float | None:
    """Reciprocal rank of the first tier-gold card in the top k, relevant or not: watches boosts of curated cards."""
    if not case.has_gold:
        return None
    return next((1 / rank for rank, card in enumerate(case.ranking[:k], start=1) if card in case.tier_gold), 0.0)
