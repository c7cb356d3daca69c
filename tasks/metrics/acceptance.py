"""The supply contract of a case: is what a correct answer needs there, and what stands beside it."""

from __future__ import annotations

import math

from kbgate.tasks.metrics import Judged, metric
from kbgate.tasks.metrics.ranking import contract
from kbgate.tasks.tables import DIGITS, EPSILON


@metric("quality", source="kbgate's supply contract")
def quality(case: Judged, k: int) -> float | None:
    """0 below the suite's pass mark (0.90 unless it says otherwise), then rising in a straight line to 1 at a contract of 1."""
    share = contract.compute(case, k)
    if share is None:
        return None
    if case.pass_mark >= 1:
        return float(share >= 1 - EPSILON)
    return max(0.0, (round(share, DIGITS) - case.pass_mark) / (1 - case.pass_mark))


@metric("failing", source="kbgate's supply contract", higher_is_better=False)
def failing(case: Judged, k: int) -> float | None:
    """1 if the contract is below the suite's pass mark, else 0; its mean is the share of failing cases."""
    share = contract.compute(case, k)
    return None if share is None else float(share < case.pass_mark - EPSILON)


@metric("noise", source="kbgate's supply contract", higher_is_better=False, judges_gold=False, monotone=False)
def noise(case: Judged, k: int) -> float | None:
    """Share of the top k that scores below the worst card the answer needs.

    Of a group the best card counts, of all groups the worst of these. Not defined where a group is missing in the top k:
    a 0 would reward failure. Over k also where fewer came back.
    """
    top = case.ranking[:k]
    if not case.has_gold or any(group.isdisjoint(top) for group in case.groups):
        return None
    scores = case.scores or tuple(-float(rank) for rank in range(len(case.ranking)))
    of = dict(zip(case.ranking, scores, strict=True))
    threshold = min(max(of[card] for card in top if card in group) for group in case.groups)
    return sum(of[card] < threshold for card in top) / k


@metric("noisy", source="kbgate's supply contract", higher_is_better=False, judges_gold=False, monotone=False, stored=False)
def noisy(case: Judged, k: int) -> float | None:
    """1 if the noise is above its [acceptance] ceiling, else 0; its mean is the share of such questions.

    A mean of the noise itself hides them: half of the questions may stand far above a ceiling that the mean keeps.
    """
    share = noise.compute(case, k)
    if share is None or case.noise_ceiling is None:
        return None
    return float(round(share, DIGITS) > case.noise_ceiling + EPSILON)


@metric(
    "unjudged_above_gold",
    source="kbgate: label review",
    higher_is_better=False,
    judges_gold=False,
    high=math.inf,
    monotone=False,
    unit="cards",
)
def unjudged_above_gold(case: Judged, k: int) -> float | None:
    """Number of cards in the top k that nobody judged and that stand above the first gold card, or k without any."""
    if not case.has_gold:
        return None
    gold = frozenset().union(*case.groups)
    first = next((place for place, card in enumerate(case.ranking[:k]) if card in gold), k)
    return float(sum(card not in case.grades for card in case.ranking[:first]))


@metric("redundancy", source="kbgate: texts that repeat each other", higher_is_better=None, judges_gold=False, monotone=False)
def redundancy(case: Judged, k: int) -> float | None:
    """Share of the top k whose text, letter case, spaces and punctuation aside, stands on a card above it already.

    Neither good nor bad: two legitimate sources that say the same are wanted, for one may go. A ceiling tells a flood
    of copies.
    """
    return sum(card in case.repeats for card in case.ranking[:k]) / k if case.ranking else None
