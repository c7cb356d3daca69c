"""The gate rehearsed: the best and the worst that any ranking of these very cases could be, asked of the checks themselves.

A gate that says nothing of the worst ranking there is cannot close, however its line in [gates] reads. The worst ranking has
every gold last among the cards its asker could get, so slack that reaches to the end of the knowledge base hides it, as it
would hide a real one; where so few cards are eligible that it would still stand in the top k, it is not found at all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from itertools import islice

from kbgate.tasks.comparison.compare import changes_of, exam_of
from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.domain import Baseline, Case, Cases, GoldenSet, Inputs, Outcome
from kbgate.tasks.gate import CHECKS, GATED, Check
from kbgate.tasks.metrics import METRICS, figure_at, part_of
from kbgate.tasks.predicates import both, in_store_values, matches, store_fields, valid_at
from kbgate.tasks.records import canonical
from kbgate.tasks.results import Answer, Placement, Run, Scores
from kbgate.tasks.retrieval import RETRIEVERS
from kbgate.tasks.schema import Acceptance, Anchor, Asked, BaselineCase, BaselineSummary, Provenance
from kbgate.tasks.tables import DIGITS, Figure, Hits, LaneScores

Rankings = Mapping[str, Sequence[str]]
"""Card ids by case."""


class Gold(Enum):
    """Where a ranking has its gold."""

    FIRST = auto()
    LAST = auto()
    BELOW_THE_CUT = auto()


def can_close(exam: Exam) -> bool:
    """Whether some ranking of the exam's cases would make a line of [gates], [[slice]] or [acceptance] block."""
    eligible = _eligible(exam)
    best, last, below = (
        {name: _ranked(exam, case, eligible[name], place) for name, case in exam.asked.items()} for place in Gold
    )
    if exam.baseline is not None and _closes(exam, exam.baseline, best, last, below):
        return True
    # A baseline in which all cases fail leaves nothing to lose: that is no fault of the policy, and must be left behind.
    return _closes(exam, _accepted(exam, best), best, last, below)


def _closes(exam: Exam, accepted: Baseline, best: Rankings, last: Rankings, below: Rankings) -> bool:
    """Whether a line blocks one of the worst rankings, held against a baseline; the cheap question first, and often last."""
    checks = [check for check in CHECKS.values() if check.level == GATED]
    at_best = _by_cases(exam, best, accepted)
    return (
        _fires(checks, at_best, _by_cases(exam, last, accepted))
        or _fires(checks, at_best, _by_cases(exam, below, accepted))
        or _fires(checks, _in_full(exam, best, accepted), _in_full(exam, last, accepted))
    )


def _fires(checks: Sequence[Check], best: Exam, worst: Exam) -> bool:
    """Whether a check calls the worst ranking critical for something that it does not say of the best one too."""
    said = ((check, set(_critical(check, worst))) for check in checks)
    return any(reasons - set(_critical(check, best)) for check, reasons in said if reasons)


def _critical(check: Check, exam: Exam) -> Iterator[Reason]:
    for reason in check.look(exam):
        metric = reason.check.partition(".")[2]
        if reason.level == Level.CRITICAL and (not metric or part_of(Figure.parse(metric)).judges_gold):
            yield reason


def _eligible(exam: Exam) -> dict[str, list[str]]:
    """The cards that each case's asker may find on the exam's day, the curated ones last."""
    fields = {card.id: store_fields(card, exam.suite.kb.filterable) for card in exam.kb.cards.values()}
    curated = {card.id for card in exam.kb.cards.values() if card.tier == "gold"}
    known: dict[str, list[str]] = {}

    def of_case(case: Case) -> list[str]:
        where = both(valid_at(exam.clock.as_of), *(in_store_values(p) for p in (case.filter, case.entitled) if p is not None))
        key = canonical(where)
        if key not in known:
            passing = [card for card, of_card in fields.items() if matches(where, of_card)]
            known[key] = sorted(passing, key=lambda card: card in curated)
        return known[key]

    return {name: of_case(case) for name, case in exam.asked.items()}


def _ranked(exam: Exam, case: Case, eligible: Sequence[str], place: Gold) -> list[str]:
    """A ranking of a case with its gold in this place, to the depth that is looked at."""
    depth, method = exam.suite.retrieval.candidates, RETRIEVERS[exam.run.method]
    concepts = {exam.kb.cards[card].concept for card in case.grades if card in exam.kb.cards} - {""}
    family = {card for card in eligible if exam.kb.cards[card].concept in concepts} if concepts else set()
    others = list(islice((card for card in eligible if card not in case.grades and card not in family), depth))
    gold = sorted((card for card in eligible if card in case.grades), key=lambda card: -case.grades[card])
    top_k, translations = exam.suite.top_k, sorted(family - set(gold))
    if place == Gold.FIRST:
        return [*gold, *translations, *others][:depth]
    if len(others) < top_k:
        return others
    if place == Gold.BELOW_THE_CUT:
        return [*others[:top_k], *gold, *translations, *others[top_k:]][:depth]
    short = method.short_list_is_legal or exam.suite.retrieval.min_similarity is not None
    return others if short else [*others, *translations, *gold][:depth]


def _by_cases(exam: Exam, rankings: Rankings, accepted: Baseline) -> Exam:
    """What the checks of single cases see: where gold stands, its contract, and which cases changed sides; no figure."""
    contract = figure_at(METRICS["contract"], exam.suite.top_k)
    placements = {name: _placed(place, rankings[name]) for name, place in exam.scores.placements.items()}
    tops = {name: set(rankings[name][: exam.suite.top_k]) for name in placements}
    rows = {
        name: [round(sum(not group.isdisjoint(tops[name]) for group in place.groups) / len(place.groups), DIGITS)]
        if place.groups else [None]
        for name, place in placements.items()
    }  # fmt: skip
    scores = Scores({exam.run.method: LaneScores.of_rows([contract], rows)}, placements)
    run = _run(exam, exam.asked, rankings)
    changes = changes_of(exam.suite, exam.golden, exam.asked, run.method, scores, accepted)
    comparison = dataclasses.replace(exam.comparison, figures=(), changes=changes)
    return dataclasses.replace(exam, baseline=accepted, run=run, scores=scores, comparison=comparison, earlier=None)


def _placed(place: Placement, ranking: Sequence[str]) -> Placement:
    ranks = {card: ranking.index(card) + 1 if card in ranking else None for card in place.ranks}
    return dataclasses.replace(place, outcome=Outcome.ANSWERED, ranks=ranks)


def _in_full(exam: Exam, rankings: Rankings, accepted: Baseline | None) -> Exam:
    inputs = Inputs(exam.suite, exam.kb, GoldenSet(exam.golden), accepted, exam.vanished, exam.announced)
    return exam_of(inputs, exam.asked, _run(exam, exam.asked, rankings), exam.clock, touched=exam.touched)


def _run(exam: Exam, asked: Cases, rankings: Rankings) -> Run:
    hits = {name: Hits.of((card, 1.0 - rank / 1e5) for rank, card in enumerate(rankings[name])) for name in asked}
    answers = {
        name: Answer(Outcome.ANSWERED if ranking else Outcome.EMPTY, 0.0, len(ranking)) for name, ranking in rankings.items()
    }
    return Run(exam.run.method, answers, {exam.run.method: hits}, exam.run.mode)


def _accepted(exam: Exam, best: Rankings) -> Baseline:
    """The baseline that a first run with the best of all rankings would make: what later runs will be held against."""
    scored = _in_full(dataclasses.replace(exam, baseline=None), best, None).scores
    lane = scored.of(exam.run.method)
    cases = {
        name: BaselineCase.model_construct(
            id=name, hash=place.hash, cluster=place.cluster, canary=place.canary, tier_gold=place.tier_gold,
            scores={str(figure): value for figure, value in lane.of_case(name).items() if part_of(figure).stored},
            gold_ranks=dict(place.ranks), top=list(place.top), domains=list(place.domains), tiers=list(place.tiers),
            asked=Asked.model_construct(
                query=exam.asked[name].query, kind=exam.asked[name].kind, language=exam.asked[name].language,
                groups=[], grades=dict(exam.asked[name].grades),
            ),
            topic=exam.asked[name].topic, attack=exam.asked[name].attack, intent=exam.asked[name].intent,
        )
        for name, place in scored.placements.items()
    }  # fmt: skip
    summary = BaselineSummary.model_construct(
        top_k=exam.suite.top_k, unit=exam.suite.unit, metric_versions={}, means={}, aggregates={}, lanes={},
        accepted=Acceptance.model_construct(on=exam.today), anchor=Anchor.model_construct(),
        provenance=Provenance.model_construct(),
    )  # fmt: skip
    return Baseline(summary, cases, {}, "")
