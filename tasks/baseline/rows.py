"""What a run becomes when it is accepted: the lines of its cases and cards, and the means over them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import JsonValue

from kbgate.tasks.baseline.anchor import anchored_now, carried_over
from kbgate.tasks.baseline.wording import asked_of
from kbgate.tasks.comparison.aggregates import best_cosine
from kbgate.tasks.conclusions import Code, Evaluation, Exam, Level
from kbgate.tasks.domain import Card, Cards
from kbgate.tasks.manifest import HASHED
from kbgate.tasks.metrics import AGGREGATES, METRICS, Part, part_of
from kbgate.tasks.records import as_json, canonical, digest, parse_json
from kbgate.tasks.results import ChangeKind, Scores
from kbgate.tasks.schema import Acceptance, BaselineCard, BaselineCase, Mean, Means
from kbgate.tasks.tables import DIGITS, LaneScores

CaseRows = Mapping[str, BaselineCase]
CardRows = Mapping[str, BaselineCard]
_HASH = 16
_LONGEST_VALUE = 64
"""Characters of a filterable field's value, as JSON, that a line keeps as it is."""


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
    against = [r for r in evaluation.verdict.reasons if r.level != Level.ADVISORY and r.code != Code.NO_BASELINE]
    return Acceptance(
        on=evaluation.started.date(),
        reason=reason.strip(),
        verdict=evaluation.verdict.name.value,
        accepted_regression=failing if accept_regression else [],
        in_spite_of=[reason.sentence for reason in against],
    )


def _changed(evaluation: Evaluation, *kinds: ChangeKind) -> set[str]:
    return {change.case.id for change in evaluation.exam.comparison.changed(*kinds)}


def case_rows(evaluation: Evaluation, anchored: bool, accept_regression: bool) -> dict[str, BaselineCase]:
    """A line per case; `anchored`: whether this run is the anchor, `accept_regression`: whether its slips are no slips now."""
    exam = evaluation.exam
    slipped = set[str]() if accept_regression else _changed(evaluation, ChangeKind.SLIPPED)
    kept = {} if anchored or exam.baseline is None else carried_over(exam.baseline, exam.golden)[0]
    scores = scores_by_case(exam)
    return {
        name: case_row(exam, name, scores[name]).model_copy(
            update={
                "anchor": anchored_now(exam, placement, scores[name]) if anchored else kept.get(name),
                "slipped": name in slipped,
            }
        )
        for name, placement in exam.scores.placements.items()
    }


def scores_by_case(exam: Exam) -> dict[str, dict[str, float]]:
    """What a baseline stores of each case, by figure."""
    lane = exam.scores.of(exam.run.method)
    scores: dict[str, dict[str, float]] = {case: {} for case in exam.scores.placements}
    for figure in lane.figures:
        if part_of(figure).stored:
            for case, value in lane[figure].items():
                scores[case][str(figure)] = value
    return scores


def case_row(exam: Exam, name: str, scores: Mapping[str, float]) -> BaselineCase:
    """The line of a case as this exam found it; `scores`: by figure."""
    case, placement = exam.asked[name], exam.scores.placements[name]
    return BaselineCase(
        id=name,
        hash=placement.hash,
        cluster=placement.cluster,
        canary=placement.canary,
        tier_gold=placement.tier_gold,
        outcome=placement.outcome.value,
        scores=dict(scores),
        gold_ranks=dict(placement.ranks),
        top=list(placement.top),
        kth=dict(placement.kth),
        asked=asked_of(case),
        cosine=best_cosine(exam.run, name),
        topic=case.topic,
        attack=case.attack,
        intent=case.intent,
        numeric=case.numeric,
        domains=list(placement.domains),
        tiers=list(placement.tiers),
    )


def card_rows(cards: Cards, filterable: Collection[str]) -> dict[str, BaselineCard]:
    """A line per card; `filterable`: the keys of its metadata that filters may use."""
    return {name: card_row(card, filterable) for name, card in cards.items()}


def card_row(card: Card, filterable: Collection[str]) -> BaselineCard:
    """The line of a card."""
    ends = {"valid_from": card.valid_from, "valid_until": card.valid_until}
    fields: dict[str, JsonValue] = {name: end for name, end in ends.items() if end}
    if card.topics:
        fields["topics"] = list(card.topics)
    fields |= {name: as_json(card.metadata[name]) for name in sorted(filterable) if name in card.metadata}
    return BaselineCard(
        id=card.id,
        hash=card.hash,
        text=digest(card.text, _HASH),
        length=len(card.text),
        language=card.language,
        tier=card.tier,
        domain=card.domain,
        fields={name: _short(value) for name, value in fields.items()},
    )


def columns_of(row: BaselineCard) -> dict[str, JsonValue]:
    """A line as a row of Parquet, whose columns have one type each: fields as JSON text."""
    content = row.model_dump(mode="json")
    return {**content, "fields": canonical(content["fields"])}


def card_of_columns(row: Mapping[str, JsonValue]) -> BaselineCard:
    """A row of Parquet as a line; raises ValueError."""
    fields = row.get("fields")
    return BaselineCard.of({**row, "fields": parse_json(fields) if isinstance(fields, str) else fields})


def stored_versions() -> dict[str, int]:
    """The version of everything a baseline holds figures of."""
    parts: list[Part] = [*METRICS.values(), *(part for part in AGGREGATES.values() if part.stored)]
    return {part.name: part.version for part in parts}


def _short(value: JsonValue) -> JsonValue:
    """A value, or a hash of one that is long."""
    return value if len(canonical(value)) <= _LONGEST_VALUE else f"{HASHED}{digest(value, _HASH)}"


def lane_means(scores: Scores, method: str) -> dict[str, Means]:
    """The means of every other lane than the one that is judged."""
    return {lane: _lane_mean(figures) for lane, figures in scores.lanes.items() if lane != method}


def _lane_mean(scores: LaneScores) -> Means:
    values = {str(figure): list(scores[figure].values()) for figure in scores.figures}
    return {figure: _mean(of_figure) for figure, of_figure in values.items() if of_figure}
