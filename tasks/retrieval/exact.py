"""Exact search over the vectors themselves: the oracle every approximate index is measured against."""

from __future__ import annotations

import numpy as np

from kbgate.tasks.domain import Index, Question
from kbgate.tasks.registry import Search, retriever
from kbgate.tasks.retrieval.lanes import Eligible, Hits, search_lane
from kbgate.tasks.settings import Suite


@retriever("exact")
def exact(index: Index, suite: Suite) -> Search:
    """Cosine similarity of the question with every row, nothing approximated."""
    return exactly("exact", index, suite)


def exactly(lane: str, index: Index, suite: Suite) -> Search:
    """The search of every row, as the lane of that name."""
    ids, eligible = index.rows["id"].tolist(), Eligible(index)

    def ask(question: Question, count: int) -> Hits:
        assert question.vector is not None
        assert question.where is not None
        scores = index.vectors @ question.vector
        places = np.flatnonzero(eligible.rows(question.where))
        if len(places) > count:
            places = places[np.argpartition(-scores[places], count - 1)[:count]]
        return [(ids[i], float(scores[i])) for i in places]

    return search_lane(lane, index, suite.retrieval.candidates, ask)
