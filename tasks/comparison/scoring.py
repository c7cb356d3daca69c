"""Rankings beside the gold: each case judged, each metric at each cut-off, for the method and for each of its lanes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from kbgate.tasks.domain import Baseline, KnowledgeBase, Outcome, Run, Scores
from kbgate.tasks.predicates import Fields, in_store_values, matches, store_fields
from kbgate.tasks.records import canonical
from kbgate.tasks.registry import METRICS, RETRIEVERS, Judged, cuts_of
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import PLACEMENT_COLUMNS, REFERENCE, SCORE_COLUMNS, rows_of

DIGITS = 6
Rankings = Mapping[tuple[str, str], tuple[str, ...]]
"""Card ids in rank order, by (lane, case)."""


def score(suite: Suite, kb: KnowledgeBase, cases: pd.DataFrame, run: Run, baseline: Baseline | None = None) -> Scores:
    """Every defined figure of every case, for the method's ranking and each lane of it, and where its gold stands.

    A case whose question failed keeps an empty ranking: it scores 0 and stays in every denominator.
    """
    rankings, judge, points = rankings_of(run), Judge(suite, kb, cases), _by_lane(run, "score")
    accepted = _accepted(cases, baseline)
    method = RETRIEVERS[run.method]
    pair = next(((lane, RETRIEVERS[lane].reference) for lane in lanes_of(run) if RETRIEVERS[lane].reference), None)
    outcomes = dict(zip(run.answers["case"], run.answers["outcome"], strict=True))
    scored = [run.method, *method.lanes, *([REFERENCE] if (run.hits["lane"] == REFERENCE).any() else [])]
    rows, placements = [], []
    for lane in dict.fromkeys(scored):
        for case in cases["id"]:
            ranking = rankings.get((lane, case), ())
            approximate, exact = (rankings.get((name, case), ()) for name in pair or (lane, lane))
            judged = judge(case, ranking, approximate, exact, failed=not _measured(outcomes.get(case)))
            judged = dataclasses.replace(judged, scores=points.get((lane, case), ()))
            if lane == run.method:
                judged = dataclasses.replace(judged, accepted=accepted.get(case))
            rows += [(lane, case, key, value) for key, value in figures(suite, judged)]
            if lane == run.method:
                placements.append(judge.place(judged, case, outcomes.get(case, "")))
    kth = _kth_scores(run, (run.method, *method.lanes), suite.top_k)
    placed = [(*head, top, kth.get(head[0], {})) for *head, top in placements]
    return Scores(pd.DataFrame(rows, columns=list(SCORE_COLUMNS)), pd.DataFrame(placed, columns=list(PLACEMENT_COLUMNS)))


def _measured(outcome: str | None) -> bool:
    return outcome is not None and Outcome(outcome).measured


def _kth_scores(run: Run, lanes: tuple[str, ...], k: int) -> dict[str, dict[str, float]]:
    """The score a card must beat to enter the top k, by case and lane."""
    hits = run.hits[(run.hits["rank"] <= k) & run.hits["lane"].isin(lanes)]
    found: dict[str, dict[str, float]] = {}
    for hit in rows_of(hits.sort_values("rank")):
        found.setdefault(hit["case"], {})[hit["lane"]] = round(float(hit["score"]), DIGITS)
    return found


def rankings_of(run: Run) -> Rankings:
    """Each lane's ranking of each case it answered."""
    return _by_lane(run, "card")


def _by_lane(run: Run, column: str) -> dict[tuple[str, str], tuple[Any, ...]]:
    """A column of the hits in rank order, by (lane, case)."""
    found: dict[tuple[str, str], list[Any]] = {}
    ordered = run.hits.sort_values(["lane", "case", "rank"])
    for lane, case, value in zip(ordered["lane"], ordered["case"], ordered[column], strict=True):
        found.setdefault((lane, case), []).append(value)
    return {key: tuple(values) for key, values in found.items()}


def _accepted(cases: pd.DataFrame, baseline: Baseline | None) -> dict[str, tuple[str, ...]]:
    """The baseline's top k of each case that is unchanged since."""
    if baseline is None:
        return {}
    known = baseline.cases
    return {
        case: tuple(known[case]["top"])
        for case, now in zip(cases["id"], cases["hash"], strict=True)
        if case in known and known[case]["hash"] == now
    }


def lanes_of(run: Run) -> tuple[str, ...]:
    """The methods that rank by themselves in a run."""
    return RETRIEVERS[run.method].lanes or (run.method,)


def figures(suite: Suite, judged: Judged) -> Iterator[tuple[str, float]]:
    """The defined figures of one judged case, by key, to six decimals."""
    for part in METRICS.values():
        for k in cuts_of(part, suite):
            value = part.compute(judged, k)
            if value is not None:
                yield part.key(k), round(value, DIGITS)


class Judge:
    """The gold of each case, seen through what its asker may see."""

    def __init__(self, suite: Suite, kb: KnowledgeBase, cases: pd.DataFrame):
        self._top_k, self._depth = suite.top_k, suite.retrieval.candidates
        self._fields: dict[str, Fields] = {card["id"]: store_fields(card, suite.kb.filterable) for card in rows_of(kb.cards)}
        self._cases = {case["id"]: case for case in rows_of(cases)}
        self._tier_gold = frozenset(kb.cards.loc[kb.cards["tier"] == "gold", "id"])
        self._concepts = {card["id"]: card["concept"] or card["id"] for card in rows_of(kb.cards[["id", "concept"]])}
        self._domains = dict(zip(kb.cards["id"], kb.cards["domain"], strict=True))
        self._tiers = dict(zip(kb.cards["id"], kb.cards["tier"], strict=True))
        self._texts = {card: _plain(text) for card, text in zip(kb.cards["id"], kb.cards["text"], strict=True)}
        self._refuses = suite.retrieval.min_similarity is not None
        self._let_through: dict[str, frozenset[str]] = {}
        self._siblings: dict[str, set[str]] = {}
        for card, concept in self._concepts.items():
            self._siblings.setdefault(concept, set()).add(card)

    def __call__(
        self,
        case_id: str,
        ranking: tuple[str, ...],
        approximate: tuple[str, ...] = (),
        exact: tuple[str, ...] = (),
        failed: bool = False,
    ) -> Judged:
        """One ranking of one case, judged; a ranking's repeated ids count at their first place."""
        case = self._cases[case_id]
        may_see, passes = self._predicate(case["entitled"]), self._predicate(case["filter"])
        ranking = tuple(dict.fromkeys(ranking))
        groups = tuple(frozenset(card for card in group if may_see(card)) for group in case["groups"])
        groups = tuple(group for group in groups if group)
        gold: frozenset[str] = frozenset().union(*groups)
        judged = Judged(
            ranking=ranking,
            groups=groups,
            grades={card: grade for card, grade in case["grades"].items() if may_see(card)},
            family=gold.union(*(self._siblings.get(self._concepts.get(card, card), ()) for card in gold)),
            tier_gold=self._tier_gold,
            filtered_gold=frozenset(card for card in gold if passes(card)) if gold else None,
            outside=sum(not may_see(card) for card in ranking) if case["entitled"] is not None else None,
            approximate=approximate,
            exact=exact,
            failed=failed,
            repeats=self._repeats(ranking),
            refuses=self._refuses,
        )
        if case["right_filter"] is None:
            return judged
        seen, own, right = (self._passing(case[name]) for name in ("entitled", "filter", "right_filter"))
        own, right = own & seen, right & seen
        return dataclasses.replace(judged, filtered=len(own), intended=len(right), agreed=len(own & right))

    def place(self, judged: Judged, case_id: str, outcome: str) -> tuple[Any, ...]:
        """A line of `PLACEMENT_COLUMNS` without its last column."""
        case = self._cases[case_id]
        ranks = {card: rank for rank, card in enumerate(judged.ranking[: self._depth], start=1)}
        gold = sorted(frozenset().union(*judged.groups))
        return (
            case_id,
            case["hash"],
            case["cluster"],
            bool(case["canary"]),
            any(card in self._tier_gold for card in case["grades"]),
            outcome,
            judged.groups,
            dict(judged.grades),
            {card: ranks.get(card) for card in gold},
            sorted({self._domains.get(card, "") for card in case["grades"]} - {""}),
            sorted({self._tiers.get(card, "") for card in case["grades"]} - {""}),
            list(judged.ranking[: self._top_k]),
        )

    def _repeats(self, ranking: tuple[str, ...]) -> frozenset[str]:
        seen: set[str] = set()
        again = set()
        for card in ranking[: self._depth]:
            text = self._texts.get(card, card)
            if text in seen:
                again.add(card)
            seen.add(text)
        return frozenset(again)

    def _passing(self, written: Mapping[str, Any] | None) -> frozenset[str]:
        key = canonical(written)
        if key not in self._let_through:
            passes = self._predicate(written)
            self._let_through[key] = frozenset(card for card in self._fields if passes(card))
        return self._let_through[key]

    def _predicate(self, written: Mapping[str, Any] | None) -> Callable[[str], bool]:
        if written is None:
            return lambda card: True
        predicate = in_store_values(written)
        # A vanished gold counts as entitled: its loss must show.
        return lambda card: card not in self._fields or matches(predicate, self._fields[card])


def _plain(text: str) -> str:
    """A text without what two copies of it may differ in: letter case, spaces, punctuation."""
    return "".join(character for character in text.casefold() if character.isalnum()) or text
