"""Dense search through the store, as production does it."""

from __future__ import annotations

from tasks.domain import Index, Question
from tasks.indexing import open_search
from tasks.registry import Search, retriever
from tasks.retrieval.exact import exactly
from tasks.retrieval.lanes import Hits, search_lane
from tasks.settings import Suite


@retriever("dense", reference="exact")
def dense(index: Index, suite: Suite) -> Search:
    """Cosine similarity through Chroma's HNSW index, validity, filter and access applied by the store."""
    if not index.store:
        return exactly("dense", index, suite)
    nearest = open_search(index)

    def ask(question: Question, count: int) -> Hits:
        assert question.vector is not None
        assert question.where is not None
        return nearest(question.vector, dict(question.where), count)

    return search_lane("dense", index, suite.retrieval.candidates, ask)
