"""Exact search over the vectors themselves: the oracle every approximate index is measured against."""

from __future__ import annotations

import numpy as np

from kbgate.tasks.domain import Index, Question
from kbgate.tasks.retrieval import ScoreKind, Search, retriever
from kbgate.tasks.retrieval.lanes import Eligible, search_lane
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Hits


@retriever("exact", scores=ScoreKind.COSINE)
def exact(index: Index, suite: Suite) -> Search:
    """Cosine similarity of the question with every row, nothing approximated."""
    return exactly("exact", index, suite)


def exactly(lane: str, index: Index, suite: Suite) -> Search:
    """The search of every row, as the lane of that name."""
    ids, eligible = index.rows.ids, Eligible(index.rows)

    def ask(question: Question, count: int) -> Hits:
        assert question.vector is not None
        scores = index.vectors @ question.vector
        places = np.flatnonzero(eligible.rows(question.where))
        if len(places) > count:
            places = places[np.argpartition(-scores[places], count - 1)[:count]]
        return Hits(tuple(ids[place] for place in places), scores[places].astype(float))

    return search_lane(lane, index.rows, suite.retrieval.candidates, ask)
