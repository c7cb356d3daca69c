"""Rankings beside the gold: each case judged, each metric at each cut-off, for the method and for each of its lanes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np

from kbgate.tasks.domain import Baseline, Card, Case, Cases, KnowledgeBase, Outcome, Predicate
from kbgate.tasks.metrics import METRICS, Compute, Judged, cuts_of, figure_at
from kbgate.tasks.predicates import in_store_values, matches, store_fields
from kbgate.tasks.records import canonical
from kbgate.tasks.results import Placement, Run, Scores
from kbgate.tasks.retrieval import RETRIEVERS, lanes_of
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import DIGITS, REFERENCE, Figure, LaneScores


def score(suite: Suite, kb: KnowledgeBase, cases: Cases, run: Run, baseline: Baseline | None = None) -> Scores:
    """Every defined figure of every case, for the method's ranking and each lane of it, and where its gold stands.

    A case whose question failed keeps an empty ranking: it scores 0 and stays in every denominator.
    """
    judge, computed = Judge(suite, kb), computations(suite)
    method = RETRIEVERS[run.method]
    lanes = dict.fromkeys((run.method, *method.lanes, *([REFERENCE] if REFERENCE in run.lanes else [])))
    pair = next(((lane.name, lane.reference) for lane in lanes_of(run.method) if lane.reference), None)
    scored: dict[str, LaneScores] = {}
    placements = {}
    for lane in lanes:
        rows = {}
        for case in cases.values():
            judged = judge(case, run, lane, pair)
            if lane == run.method:
                judged = dataclasses.replace(judged, accepted=_accepted(case, baseline))
                placements[case.id] = judge.place(case, judged, run, (run.method, *method.lanes))
            rows[case.id] = [_rounded(compute(judged, k)) for _, compute, k in computed]
        scored[lane] = LaneScores.of_rows([figure for figure, _, _ in computed], rows)
    return Scores(scored, placements)


def _accepted(case: Case, baseline: Baseline | None) -> tuple[str, ...] | None:
    """The baseline's top k of a case that is unchanged since."""
    row = baseline.cases.get(case.id) if baseline else None
    return tuple(row.top) if row is not None and row.hash == case.hash else None


Computation = tuple[Figure, Compute, int]
"""A figure, and how it is computed at its cut-off."""


def computations(suite: Suite) -> list[Computation]:
    """Every figure of single cases that a run of the suite can carry, in the order reports print them."""
    return [(figure_at(part, k), part.compute, k) for part in METRICS.values() for k in cuts_of(part, suite)]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


class Judge:
    """The gold of each case, seen through what its asker may see."""

    def __init__(self, suite: Suite, kb: KnowledgeBase):
        self._suite, self._cards = suite, kb.cards
        self._fields = {card.id: store_fields(card, suite.kb.filterable) for card in kb.cards.values()}
        self._tier_gold = frozenset(card.id for card in kb.cards.values() if card.tier == "gold")
        self._texts: dict[str, str] = {}
        self._let_through: dict[str, frozenset[str]] = {}
        self._siblings: dict[str, set[str]] = {}
        for card in kb.cards.values():
            self._siblings.setdefault(_concept(card), set()).add(card.id)

    def __call__(self, case: Case, run: Run, lane: str, pair: tuple[str, str] | None = None) -> Judged:
        """One lane's ranking of one case, judged; `pair`: the approximate lane and the exact one beside it."""
        may_see, passes = self._predicate(case.entitled), self._predicate(case.filter)
        hits = run.of(lane, case.id).once()  # repeated ids count at their first place
        groups = tuple(group for group in (frozenset(filter(may_see, group)) for group in case.groups) if group)
        gold = frozenset[str]().union(*groups)
        approximate, exact = (run.of(name, case.id).once().ids for name in pair or (lane, lane))
        answer = run.answers.get(case.id)
        judged = Judged(
            ranking=hits.ids,
            groups=groups,
            grades={card: grade for card, grade in case.grades.items() if may_see(card)},
            family=gold.union(*(self._translations(card) for card in gold)),
            tier_gold=self._tier_gold,
            filtered_gold=frozenset(filter(passes, gold)) if gold else None,
            outside=sum(not may_see(card) for card in hits.ids) if case.entitled is not None else None,
            approximate=approximate,
            exact=exact,
            failed=answer is None or not answer.outcome.measured,
            scores=tuple(hits.scores.tolist()),
            repeats=self._repeats(hits.ids),
            refuses=self._suite.retrieval.min_similarity is not None,
            pass_mark=self._suite.pass_mark,
            noise_ceiling=self._suite.acceptance.noise_ceiling(len(groups)) if self._suite.acceptance else None,
        )
        return judged if case.right_filter is None else self._beside_the_right_filter(case, judged)

    def _beside_the_right_filter(self, case: Case, judged: Judged) -> Judged:
        seen, given, right = (self._passing(written) for written in (case.entitled, case.filter, case.right_filter))
        given, right = given & seen, right & seen
        return dataclasses.replace(judged, filtered=len(given), intended=len(right), agreed=len(given & right))

    def place(self, case: Case, judged: Judged, run: Run, lanes: tuple[str, ...]) -> Placement:
        """Where the gold of a judged case stands, and the score a card must beat to enter the top k of each lane."""
        top_k, depth = self._suite.top_k, self._suite.retrieval.candidates
        ranks = {card: rank for rank, card in enumerate(judged.ranking[:depth], start=1)}
        gold = sorted(frozenset[str]().union(*judged.groups))
        answers = [self._cards[card] for card in case.grades if card in self._cards]
        hits = {lane: run.of(lane, case.id).once() for lane in lanes}
        answer = run.answers.get(case.id)
        return Placement(
            case=case.id,
            hash=case.hash,
            cluster=case.cluster,
            canary=case.canary,
            tier_gold=any(card in self._tier_gold for card in case.grades),
            outcome=answer.outcome if answer else Outcome.RAISED,
            groups=judged.groups,
            grades=judged.grades,
            ranks={card: ranks.get(card) for card in gold},
            domains=tuple(sorted({card.domain for card in answers} - {""})),
            tiers=tuple(sorted({card.tier for card in answers} - {""})),
            top=judged.ranking[:top_k],
            kth={lane: round(float(of_lane.scores[:top_k][-1]), DIGITS) for lane, of_lane in hits.items() if len(of_lane)},
        )

    def _translations(self, card: str) -> set[str]:
        return self._siblings.get(_concept(self._cards[card]) if card in self._cards else card, set())

    def _repeats(self, ranking: tuple[str, ...]) -> frozenset[str]:
        seen: set[str] = set()
        again = set()
        for card in ranking[: self._suite.retrieval.candidates]:
            text = self._text(card)
            if text in seen:
                again.add(card)
            seen.add(text)
        return frozenset(again)

    def _text(self, card: str) -> str:
        """A card's text without what two copies of it may differ in: letter case, spaces, punctuation."""
        if card not in self._texts:
            written = self._cards[card].text if card in self._cards else card
            self._texts[card] = "".join(filter(str.isalnum, written.casefold())) or written
        return self._texts[card]

    def _passing(self, written: Predicate | None) -> frozenset[str]:
        key = canonical(written)
        if key not in self._let_through:
            self._let_through[key] = frozenset(filter(self._predicate(written), self._fields))
        return self._let_through[key]

    def _predicate(self, written: Predicate | None) -> Callable[[str], bool]:
        if written is None:
            return lambda card: True
        predicate = in_store_values(written)
        # A vanished gold counts as entitled: its loss must show.
        return lambda card: card not in self._fields or matches(predicate, self._fields[card])


def _concept(card: Card) -> str:
    return card.concept or card.id


def means_of(scores: LaneScores) -> Mapping[Figure, tuple[float, int]]:
    """The mean of each figure over the cases that have it as a number, and how many these are."""
    measured = scores.defined & np.isfinite(scores.values)
    counts = measured.sum(axis=0)
    return {
        figure: (float(scores.values[measured[:, place], place].mean()), int(counts[place]))
        for place, figure in enumerate(scores.figures)
        if counts[place]
    }
