"""Every question against every row, exactly, in blocks: as much memory as one block takes, at the speed of a matrix product.

For ranking all cases, where nobody asks how long a single question takes: a lane under examination is asked one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kbgate.tasks.domain import Index, Question, Ranked
from kbgate.tasks.retrieval import Search
from kbgate.tasks.retrieval.eligible import eligible_of
from kbgate.tasks.retrieval.exact import nearest
from kbgate.tasks.retrieval.lanes import search_lane
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Floats, Hits, Vectors

SCORES = 4_000_000
"""Scores held at once: 16 MB."""


def search_in_blocks(lane: str, index: Index, suite: Suite) -> Search:
    """Exact cosine search of many questions, as the lane of that name."""
    eligible, ids = eligible_of(index.rows), index.rows.ids
    held: dict[int, Vectors | Floats] = {}

    def ask(question: Question, count: int) -> Hits:
        return nearest(held[id(question)], eligible.rows(question.where), ids, count)

    one_by_one = search_lane(lane, index.rows, suite.retrieval.candidates, ask)

    def search(questions: Sequence[Question], k: int) -> list[Ranked]:
        answers: list[Ranked] = []
        for block in _blocks(questions, len(index.rows)):
            asked = np.stack([question.vector for question in block if question.vector is not None])
            held.clear()
            held.update(zip(map(id, block), asked @ index.vectors.T, strict=True))
            answers += one_by_one(block, k)
        held.clear()
        return answers

    return search


def _blocks(questions: Sequence[Question], rows: int) -> Iterator[Sequence[Question]]:
    size = max(1, SCORES // max(rows, 1))
    for at in range(0, len(questions), size):
        yield questions[at : at + size]
