"""A variant finds what an index that was built so would find: the lanes themselves are the oracle."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kbgate.tasks.diagnosis.lexicon import analyse, bm25
from kbgate.tasks.diagnosis.variants import AS_IS, Change, Pieces, Variants
from kbgate.tasks.domain import Index, KnowledgeBase, Question
from kbgate.tasks.index.chunking import chunk
from kbgate.tasks.index.store import build_rows
from kbgate.tasks.index.vectors import Vectors
from kbgate.tasks.predicates import valid_on
from kbgate.tasks.registry import RETRIEVERS
from kbgate.tasks.retrieval.lexical import terms
from kbgate.tasks.settings import Suite
from tests.exams import Desk

DAY = dt.date(2026, 6, 1)
WORDS = (
    "ferry", "harbour", "ticket", "island", "storm", "cabin", "deck", "captain", "timetable", "winter", "summer", "dog",
    "bicycle", "price", "child",
)  # fmt: skip


def knowledge(draw: random.Random, count: int) -> list[dict[str, object]]:
    return [
        {"id": f"c{n:02d}", "title": draw.choice(WORDS), "text": " ".join(draw.choices(WORDS, k=draw.randint(5, 120)))}
        for n in range(count)
    ]


def indexed(suite: Suite, kb: KnowledgeBase) -> tuple[pd.DataFrame, pd.DataFrame, Vectors]:
    rows, members = build_rows(suite, kb, chunk(suite, kb))
    vectors = np.stack([vector_of(text) for text in rows["text"]])
    return rows, members, vectors


def vector_of(text: str) -> Vectors:
    """A text as the direction of its word counts."""
    counts = np.array([text.count(word) for word in WORDS], np.float32) + 0.01
    return np.asarray(counts / np.linalg.norm(counts), np.float32)


@pytest.mark.parametrize("method", ["hybrid", "bm25", "exact", "dense"])
def test_a_variant_ranks_as_an_index_that_was_built_so(method: str, desk: Desk, tmp_path: Path) -> None:
    draw = random.Random(11)
    desk.cards, desk.settings = knowledge(draw, 40), "top_k = 3\nk_values = [1, 3]\n[chunking]\nsize = 120\noverlap = 20\n"
    desk.case("a", gold="c00")
    before = desk.exam({"a": []})
    retrieval = before.suite.retrieval.model_copy(update={"method": method, "candidates": 30})
    suite = before.suite.model_copy(update={"retrieval": retrieval})
    variants = Variants(suite, *indexed(suite, before.kb), tmp_path)
    gone, put = frozenset({"c03", "c05", "c07"}), {"id": "c05", "title": "storm", "text": "ferry storm captain " * 3}
    desk.cards = [card for card in desk.cards if card["id"] not in gone]
    kept = [dict(card) for card in desk.cards]
    for change, cards in ((AS_IS, None), (Change(gone), kept), (None, [*kept, put])):
        if cards is not None:
            desk.cards = cards
        kb = before.kb if cards is None else desk.exam({"a": []}).kb
        if change is None:
            new = KnowledgeBase(kb.cards[kb.cards["id"] == "c05"].reset_index(drop=True))
            change = Change(gone, Pieces(*indexed(suite, new)))
        built = Index(*indexed(suite, kb), "", "")
        search = RETRIEVERS[method].connect(built, suite)
        for _ in range(12):
            text = " ".join(draw.choices(WORDS, k=3))
            question = Question(text, "en", valid_on(DAY), vector_of(text))
            (expected,) = search([question], 3)
            found = variants.search(question, change)
            assert [card for card, _ in found.hits] == [card for card, _ in expected.lanes[method]]
            assert [score for _, score in found.hits] == pytest.approx([score for _, score in expected.lanes[method]], abs=2e-6)


def test_the_lexicon_is_kept_and_read_back(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbgate.tasks.diagnosis.lexicon._KEPT_ABOVE", 1)
    desk.cards = knowledge(random.Random(2), 30)
    desk.case("a", gold="c00")
    exam = desk.exam({"a": []})
    rows, _, _ = indexed(exam.suite, exam.kb)
    there, question = np.ones(len(rows), bool), terms("the storm and the captain", "en")
    first = bm25(question, [(analyse(rows, tmp_path), there)])[0]
    (kept,) = (tmp_path / "terms").iterdir()
    monkeypatch.setattr("kbgate.tasks.diagnosis.lexicon.terms", lambda *_: pytest.fail("analysed again"))
    assert bm25(question, [(analyse(rows, tmp_path), there)])[0].tolist() == first.tolist()
    monkeypatch.undo()
    monkeypatch.setattr("kbgate.tasks.diagnosis.lexicon._KEPT_ABOVE", 1)
    whole = kept.read_bytes()
    for torn in (b"torn", whole[: len(whole) // 2], b""):
        kept.write_bytes(torn)
        assert bm25(question, [(analyse(rows, tmp_path), there)])[0].tolist() == first.tolist()
    assert [path.name for path in (tmp_path / "terms").iterdir()] == [kept.name]


def test_nothing_is_found_of_an_index_from_which_all_is_gone(desk: Desk, tmp_path: Path) -> None:
    desk.cards = knowledge(random.Random(2), 4)
    desk.case("a", gold="c00")
    exam = desk.exam({"a": []})
    variants = Variants(exam.suite, *indexed(exam.suite, exam.kb), tmp_path)
    question = Question("storm", "en", valid_on(DAY), vector_of("storm"))
    assert variants.search(question, Change(frozenset(card["id"] for card in desk.cards))).hits == []
