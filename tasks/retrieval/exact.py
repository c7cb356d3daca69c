"""Exact search over the vectors themselves: the oracle every approximate index is measured against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kbgate.tasks.domain import Index, Question
from kbgate.tasks.retrieval import ScoreKind, Search, retriever
from kbgate.tasks.retrieval.eligible import eligible_of
from kbgate.tasks.retrieval.lanes import search_lane
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Floats, Hits, Mask, Vectors


@retriever("exact", scores=ScoreKind.COSINE)
def exact(index: Index, suite: Suite) -> Search:
    """Cosine similarity of the question with every row, nothing approximated."""
    return exactly("exact", index, suite)


def exactly(lane: str, index: Index, suite: Suite) -> Search:
    """The search of every row, as the lane of that name."""
    ids, eligible = index.rows.ids, eligible_of(index.rows)

    def ask(question: Question, count: int) -> Hits:
        assert question.vector is not None
        return nearest(index.vectors @ question.vector, eligible.rows(question.where), ids, count)

    return search_lane(lane, index.rows, suite.retrieval.candidates, ask)


def nearest(scores: Vectors | Floats, allowed: Mask, ids: Sequence[str], count: int) -> Hits:
    """The best so many of the rows that are allowed, in no order."""
    places = np.flatnonzero(allowed)
    if len(places) > count:
        places = places[np.argpartition(-scores[places], count - 1)[:count]]
    return Hits(tuple(ids[place] for place in places.tolist()), scores[places].astype(float))
