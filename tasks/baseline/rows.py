"""What a run becomes when it is accepted: the lines of its cases and cards, and the means over them."""

from __future__ import annotations

from collections.abc import Mapping

from kbgate.tasks.baseline.anchor import anchor_of
from kbgate.tasks.conclusions import Code, Evaluation
from kbgate.tasks.domain import Cards
from kbgate.tasks.metrics import part_of
from kbgate.tasks.results import ChangeKind, Scores
from kbgate.tasks.schema import Acceptance, BaselineCard, BaselineCase, Mean, Means
from kbgate.tasks.tables import DIGITS, LaneScores

CaseRows = Mapping[str, BaselineCase]
CardRows = Mapping[str, BaselineCard]


def _mean(values: list[float]) -> Mean:
    return Mean(mean=round(sum(values) / len(values), DIGITS), n=len(values))


def means(cases: CaseRows) -> Means:
    """The mean of each figure over the cases that have it, and their number."""
    values: dict[str, list[float]] = {}
    for case in sorted(cases):
        for figure, value in cases[case].scores.items():
            values.setdefault(figure, []).append(value)
    return {figure: _mean(of_figure) for figure, of_figure in values.items()}


def acceptance(evaluation: Evaluation, reason: str, accept_regression: bool) -> Acceptance:
    """Who accepts a run, and in spite of what."""
    failing = sorted(_changed(evaluation, ChangeKind.NEWLY_FAILING, ChangeKind.SLIPPED))
    return Acceptance(
        on=evaluation.started.date(),
        reason=reason.strip(),
        verdict=evaluation.verdict.name.value,
        accepted_regression=failing if accept_regression else [],
        in_spite_of=[r.sentence for r in evaluation.verdict.reasons if r.code != Code.NO_BASELINE],
    )


def _changed(evaluation: Evaluation, *kinds: ChangeKind) -> set[str]:
    return {change.case.id for change in evaluation.exam.comparison.changed(*kinds)}


def case_rows(evaluation: Evaluation, anchored: bool, accept_regression: bool) -> dict[str, BaselineCase]:
    """A line per case; `anchored`: whether this run is the anchor, `accept_regression`: whether its slips are no slips now."""
    exam = evaluation.exam
    slipped = set[str]() if accept_regression else _changed(evaluation, ChangeKind.SLIPPED)
    lane = exam.scores.of(exam.run.method)
    scores: dict[str, dict[str, float]] = {case: {} for case in exam.scores.placements}
    for figure in lane.figures:
        if part_of(figure).stored:
            for case, value in lane[figure].items():
                scores[case][str(figure)] = value
    return {
        case: BaselineCase(
            id=case,
            hash=placement.hash,
            cluster=placement.cluster,
            canary=placement.canary,
            tier_gold=placement.tier_gold,
            outcome=placement.outcome.value,
            scores=scores[case],
            gold_ranks=dict(placement.ranks),
            top=list(placement.top),
            kth=dict(placement.kth),
            anchor=anchor_of(exam, placement, scores[case], anchored),
            slipped=case in slipped,
        )
        for case, placement in exam.scores.placements.items()
    }


def card_rows(cards: Cards) -> dict[str, BaselineCard]:
    """A line per card."""
    return {name: BaselineCard(id=name, hash=card.hash, tier=card.tier, domain=card.domain) for name, card in cards.items()}


def lane_means(scores: Scores, method: str) -> dict[str, Means]:
    """The means of every other lane than the one that is judged."""
    return {lane: _lane_mean(figures) for lane, figures in scores.lanes.items() if lane != method}


def _lane_mean(scores: LaneScores) -> Means:
    values = {str(figure): list(scores[figure].values()) for figure in scores.figures}
    return {figure: _mean(of_figure) for figure, of_figure in values.items() if of_figure}
