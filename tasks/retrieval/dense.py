"""Dense search through the store, as production does it."""

from __future__ import annotations

from kbgate.tasks.domain import Index, Question
from kbgate.tasks.index.store import open_search
from kbgate.tasks.retrieval import ScoreKind, Search, retriever
from kbgate.tasks.retrieval.exact import exactly
from kbgate.tasks.retrieval.lanes import search_lane
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Hits


@retriever("dense", scores=ScoreKind.COSINE, reference="exact")
def dense(index: Index, suite: Suite) -> Search:
    """Cosine similarity through Chroma's HNSW index, validity, filter and access applied by the store."""
    if index.store is None:
        return exactly("dense", index, suite)
    nearest = open_search(index)

    def ask(question: Question, count: int) -> Hits:
        assert question.vector is not None
        return nearest(question.vector, question.where, count)

    return search_lane("dense", index.rows, suite.retrieval.candidates, ask)
