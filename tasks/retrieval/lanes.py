"""What every lane shares: who is eligible, asking for enough rows, rolling rows up to cards, the order of scores."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from kbgate.tasks.domain import Index, Outcome, Question, Ranked
from kbgate.tasks.retrieval import RETRIEVERS, Retriever, Search
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import NOTHING, Hits, Rows

MARGIN = 16
"""Rows asked for beyond the depth, so that a tie at the depth is cut by id and not by chance."""
_WARM_UP = 3
"""Questions asked before the clock counts, where there are enough to speak of percentiles."""
_WARM_FROM = 20

Ask = Callable[[Question, int], Hits]
"""Asks one lane for a number of rows."""


def roll_up(rows: Hits, cards: Mapping[str, Sequence[str]]) -> Hits:
    """Rows to cards: a card scores as its best row."""
    best: dict[str, float] = {}
    for row, score in rows.pairs():
        for card in cards[row]:
            best[card] = max(score, best.get(card, -math.inf))
    return Hits.ranked(best)


def search_lane(name: str, rows: Rows, candidates: int, ask: Ask) -> Search:
    """A search over one lane: `ask(question, count)` gives rows, and is asked for more where they hold too few cards."""
    cards = dict(zip(rows.ids, rows.cards, strict=True))

    def answer(question: Question, k: int) -> Ranked:
        depth, extended = candidates, False
        while True:
            hits = ask(question, depth + MARGIN)
            broken = fault(hits, cards)
            if broken:
                return Ranked(Outcome.MALFORMED, detail=broken)
            ranked = roll_up(Hits.ranked(dict(hits.pairs())).head(depth), cards)
            if len(ranked) >= k or len(hits) < depth or depth >= len(cards):
                return Ranked(Outcome.ANSWERED if len(ranked) else Outcome.EMPTY, {name: ranked}, extended=extended)
            depth, extended = depth * 2, True

    return each(answer)


def search_lanes(name: str, index: Index, suite: Suite) -> Search:
    """The search of a method that fuses others: each of its lanes asked, and their rankings made into one."""
    method = RETRIEVERS[name]
    searches = [RETRIEVERS[lane].connect(index, suite) for lane in method.lanes]

    def search(questions: Sequence[Question], k: int) -> list[Ranked]:
        per_lane = [ask(questions, k) for ask in searches]
        return [joined(method, answers, suite) for answers in zip(*per_lane, strict=True)]

    return search


def joined(method: Retriever, answers: Sequence[Ranked], suite: Suite) -> Ranked:
    """One question's lanes as one answer; a lane that failed fails the question: half a method is not what ships."""
    ms, extended = sum(a.ms for a in answers), any(a.extended for a in answers)
    for answer in answers:
        if not answer.outcome.measured:
            return Ranked(answer.outcome, {}, ms, extended, answer.detail)
    lanes = {lane: hits for answer in answers for lane, hits in answer.lanes.items()}
    hits = method.fuse([lanes[lane] for lane in method.lanes], suite) if method.fuse else NOTHING
    lane_ms = {lane: answer.ms for answer in answers for lane in answer.lanes}
    outcome = Outcome.ANSWERED if len(hits) else Outcome.EMPTY
    return Ranked(outcome, {method.name: hits, **lanes}, ms, extended, lane_ms=lane_ms)


def fault(hits: Hits, known: Collection[str]) -> str:
    """What is wrong with a raw answer (an id twice, an unknown id, a score that is no number), or ""."""
    if len(set(hits.ids)) != len(hits.ids):
        return "one id is listed twice"
    unknown = next((name for name in hits.ids if name not in known), None)
    if unknown is not None:
        return f"unknown id '{unknown}'"
    if not np.isfinite(hits.scores).all():
        return "a score is not a finite number"
    return ""


def each(answer: Callable[[Question, int], Ranked]) -> Search:
    """Ask question by question, with the time of each; one that raises is an outcome and stops no other."""

    def search(questions: Sequence[Question], k: int) -> list[Ranked]:
        with contextlib.suppress(Exception):
            for question in questions[: _WARM_UP if len(questions) >= _WARM_FROM else 0]:
                answer(question, k)
        answers = []
        for question in questions:
            begun = time.perf_counter()
            try:
                given = answer(question, k)
            except Exception as error:
                given = Ranked(Outcome.RAISED, detail=f"{type(error).__name__}: {error}"[:300])
            ms = (time.perf_counter() - begun) * 1000
            answers.append(dataclasses.replace(given, ms=ms))
        return answers

    return search
