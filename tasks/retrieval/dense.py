"""Dense search through the store, as production does it."""

from __future__ import annotations

from kbgate.tasks.domain import Index, Question
from kbgate.tasks.index.store import open_search
from kbgate.tasks.registry import Search, retriever
from kbgate.tasks.retrieval.exact import exactly
from kbgate.tasks.retrieval.lanes import Hits, search_lane
from kbgate.tasks.settings import Suite


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
