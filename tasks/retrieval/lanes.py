"""What every lane shares: who is eligible, asking for enough rows, rolling rows up to cards, the order of scores."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kbgate.tasks.domain import Index, Outcome, Question, Ranked
from kbgate.tasks.predicates import Predicate, matches
from kbgate.tasks.records import canonical
from kbgate.tasks.registry import Search

Hits = list[tuple[str, float]]
"""(id, score), best first."""
Mask = np.ndarray[Any, np.dtype[np.bool_]]

DIGITS = 6
MARGIN = 16
"""Rows asked for beyond the depth, so that a tie at the depth is cut by id and not by chance."""

_WARM_UP = 3
"""Questions asked before the clock counts, where there are enough to speak of percentiles."""
_WARM_FROM = 20

Ask = Callable[[Question, int], Hits]
"""Asks one lane for a number of rows."""


class Eligible:
    """Which rows and how many cards satisfy a predicate, by our own evaluator, each predicate evaluated once."""

    def __init__(self, index: Index):
        self._fields = index.rows["fields"].tolist()
        self._cards = [tuple(cards) for cards in cards_of(index).values()]
        self._known: dict[str, tuple[Mask, int]] = {}

    def _look(self, where: Predicate) -> tuple[Mask, int]:
        key = canonical(where)
        if key not in self._known:
            mask = np.fromiter((matches(where, fields) for fields in self._fields), bool, len(self._fields))
            cards = {card for place in np.flatnonzero(mask) for card in self._cards[place]}
            self._known[key] = (mask, len(cards))
        return self._known[key]

    def rows(self, where: Predicate) -> Mask:
        """A boolean per row of the index."""
        return self._look(where)[0]

    def cards(self, where: Predicate) -> int:
        """The number of cards that could be found."""
        return self._look(where)[1]


def ranked(scores: Mapping[str, float]) -> Hits:
    """Ids by rounded score descending, then id ascending."""
    rounded = ((name, round(score, DIGITS)) for name, score in scores.items())
    return sorted(rounded, key=lambda hit: (-hit[1], hit[0]))


def cards_of(index: Index) -> dict[str, tuple[str, ...]]:
    """The cards each row of the index stands for, in the rows' order."""
    by_row: dict[str, dict[str, None]] = {row: {} for row in index.rows["id"]}
    for row, card in zip(index.members["row"], index.members["card"], strict=True):
        by_row[row][card] = None
    return {row: tuple(cards) for row, cards in by_row.items()}


def roll_up(rows: Hits, cards: Mapping[str, Sequence[str]]) -> Hits:
    """Rows to cards: a card scores as its best row."""
    best: dict[str, float] = {}
    for row, score in rows:
        for card in cards[row]:
            best[card] = max(score, best.get(card, -math.inf))
    return ranked(best)


def search_lane(name: str, index: Index, candidates: int, ask: Ask) -> Search:
    """A search over one lane: `ask(question, count)` gives rows, and is asked for more where they hold too few cards."""
    cards = cards_of(index)

    def answer(question: Question, k: int) -> Ranked:
        depth, extended = candidates, False
        while True:
            rows = ask(question, depth + MARGIN)
            broken = fault(rows, cards)
            if broken:
                return Ranked(Outcome.MALFORMED, detail=broken)
            hits = roll_up(ranked(dict(rows))[:depth], cards)
            if len(hits) >= k or len(rows) < depth or depth >= len(cards):
                return Ranked(Outcome.ANSWERED if hits else Outcome.EMPTY, {name: hits}, extended=extended)
            depth, extended = depth * 2, True

    return each(answer)


def fault(hits: Sequence[tuple[str, float]], known: Mapping[str, Any]) -> str:
    """What is wrong with a raw answer (an id twice, an unknown id, a score that is no number), or ""."""
    ids = [name for name, _ in hits]
    if len(set(ids)) != len(ids):
        return "one id is listed twice"
    unknown = next((name for name in ids if name not in known), None)
    if unknown is not None:
        return f"unknown id '{unknown}'"
    if any(not math.isfinite(score) for _, score in hits):
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
