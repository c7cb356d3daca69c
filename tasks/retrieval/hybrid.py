"""Reciprocal rank fusion of a dense and a lexical lane, over cards."""

from __future__ import annotations

from collections.abc import Sequence

from kbgate.tasks.domain import Index, Outcome, Question, Ranked
from kbgate.tasks.registry import RETRIEVERS, Search, retriever
from kbgate.tasks.retrieval.lanes import Hits, ranked
from kbgate.tasks.settings import Suite

LANES = ("dense", "bm25")


def fuse(lanes: Sequence[Hits], suite: Suite) -> Hits:
    """Cards by the sum of 1 / (rrf_k + rank) over the lanes that hold them. Source: Cormack et al. 2009."""
    scores: dict[str, float] = {}
    for lane in lanes:
        for rank, (card, _) in enumerate(lane, start=1):
            scores[card] = scores.get(card, 0.0) + 1.0 / (suite.retrieval.rrf_k + rank)
    return ranked(scores)


@retriever("hybrid", lanes=LANES, fuse=fuse)
def hybrid(index: Index, suite: Suite) -> Search:
    """Dense and BM25 rankings fused by reciprocal rank."""
    searches = [RETRIEVERS[lane].connect(index, suite) for lane in LANES]

    def search(questions: Sequence[Question], k: int) -> list[Ranked]:
        per_lane = [ask(questions, k) for ask in searches]
        return [_joined(answers, suite) for answers in zip(*per_lane, strict=True)]

    return search


def _joined(answers: Sequence[Ranked], suite: Suite) -> Ranked:
    """One question's lanes as one answer; a lane that failed fails the question: half a hybrid is not what ships."""
    ms, extended = sum(a.ms for a in answers), any(a.extended for a in answers)
    for answer in answers:
        if not answer.outcome.measured:
            return Ranked(answer.outcome, {}, ms, extended, answer.detail)
    lanes = {lane: list(hits) for answer in answers for lane, hits in answer.lanes.items()}
    hits = fuse(list(lanes.values()), suite)
    lane_ms = {lane: answer.ms for answer in answers for lane in answer.lanes}
    return Ranked(Outcome.ANSWERED if hits else Outcome.EMPTY, {"hybrid": hits, **lanes}, ms, extended, lane_ms=lane_ms)
