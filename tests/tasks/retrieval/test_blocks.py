"""In blocks or one by one, exact search ranks alike, and holds no more than a block of scores."""

from __future__ import annotations

import numpy as np
import pytest

from kbgate.tasks.domain import Index, Outcome, Question
from kbgate.tasks.retrieval import blocks
from kbgate.tasks.retrieval.blocks import search_in_blocks
from kbgate.tasks.retrieval.exact import exactly
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Rows


def index_of(rows: int, seed: int = 3) -> Index:
    names = tuple(f"r{n:03d}" for n in range(rows))
    cards = tuple((f"c{n % 90}",) for n in range(rows))
    vectors = np.random.default_rng(seed).normal(size=(rows, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    fields = tuple({"half": n % 2} for n in range(rows))
    return Index(Rows(names, names, ("",) * rows, fields, tuple((n,) for n in names), cards), vectors)


def asked(index: Index, count: int) -> list[Question]:
    return [Question(f"q{n}", where={"half": n % 2} if n % 3 else {}, vector=index.vectors[n]) for n in range(count)]


@pytest.mark.parametrize("held", [1, 700, 4_000_000])
def test_blocks_of_any_size_rank_as_one_question_at_a_time(
    held: int, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "SCORES", held)
    index, suite = index_of(300), Suite.model_validate({"folder": tmp_path, "name": "x", "retrieval": {"candidates": 20}})
    questions = asked(index, 25)
    one_by_one = exactly("exact", index, suite)(questions, 10)
    together = search_in_blocks("exact", index, suite)(questions, 10)
    assert [answer.lanes["exact"].ids for answer in together] == [answer.lanes["exact"].ids for answer in one_by_one]
    for mine, theirs in zip(together, one_by_one, strict=True):
        np.testing.assert_allclose(mine.lanes["exact"].scores, theirs.lanes["exact"].scores, atol=2e-6)
        assert mine.outcome == Outcome.ANSWERED


def test_a_question_that_comes_twice_is_answered_twice(tmp_path: object) -> None:
    index, suite = index_of(50), Suite.model_validate({"folder": tmp_path, "name": "x"})
    question = asked(index, 1)[0]
    first, second = search_in_blocks("exact", index, suite)([question, question], 5)
    assert first.lanes["exact"].ids == second.lanes["exact"].ids
