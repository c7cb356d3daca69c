"""Reciprocal rank fusion of a dense and a lexical lane, over cards."""

from __future__ import annotations

from collections.abc import Sequence

from kbgate.tasks.domain import Index
from kbgate.tasks.retrieval import ScoreKind, Search, retriever
from kbgate.tasks.retrieval.lanes import search_lanes
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Hits


def fuse(lanes: Sequence[Hits], suite: Suite) -> Hits:
    """Cards by the sum of 1 / (rrf_k + rank) over the lanes that hold them. Source: Cormack et al. 2009."""
    scores: dict[str, float] = {}
    for lane in lanes:
        for rank, card in enumerate(lane.ids, start=1):
            scores[card] = scores.get(card, 0.0) + 1.0 / (suite.retrieval.rrf_k + rank)
    return Hits.ranked(scores)


@retriever(
    "hybrid",
    scores=ScoreKind.FUSED,
    lanes=("dense", "bm25"),
    fuse=fuse,
    settings=("candidates", "rrf_k", "rerank", "min_similarity"),
)
def hybrid(index: Index, suite: Suite) -> Search:
    """Dense and BM25 rankings fused by reciprocal rank."""
    return search_lanes("hybrid", index, suite)
