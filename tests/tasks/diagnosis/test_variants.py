"""A variant finds what an index that was built so would find: the lanes themselves are the oracle."""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from kbgate.tasks.diagnosis.lexicon import analyse, bm25
from kbgate.tasks.diagnosis.variants import AS_IS, Change, Pieces, Variants, index_after
from kbgate.tasks.domain import Index, KnowledgeBase, Outcome, Question, Ranked
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.index.chunking import chunk
from kbgate.tasks.index.store import build_rows
from kbgate.tasks.predicates import valid_at
from kbgate.tasks.retrieval import RETRIEVERS, ScoreKind, Search, retriever
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Hits, Rows, Vectors
from kbgate.tasks.words import terms
from kbgate.tasks.words.analyser import OURS
from tests.exams import Desk

DAY = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
WORDS = (
    "ferry", "harbour", "ticket", "island", "storm", "cabin", "deck", "captain", "timetable", "winter", "summer", "dog",
    "bicycle", "price", "child",
)  # fmt: skip


def knowledge(draw: random.Random, count: int) -> list[dict[str, object]]:
    return [
        {"id": f"c{n:02d}", "title": draw.choice(WORDS), "text": " ".join(draw.choices(WORDS, k=draw.randint(5, 120)))}
        for n in range(count)
    ]


def indexed(suite: Suite, kb: KnowledgeBase) -> tuple[Rows, Vectors]:
    rows = build_rows(suite, kb, chunk(suite, kb))
    return rows, np.stack([vector_of(text) for text in rows.texts])


def vector_of(text: str) -> Vectors:
    """A text as the direction of its word counts."""
    counts = np.array([text.count(word) for word in WORDS], np.float32) + 0.01
    return np.asarray(counts / np.linalg.norm(counts), np.float32)


def declared(connect: Callable[[Index, Suite], Search], name: str) -> Iterator[str]:
    """A retrieval method that somebody brought, for one test."""
    retriever(name, scores=ScoreKind.OTHER)(connect)
    yield name
    RETRIEVERS.remove(name)


@pytest.fixture
def brought() -> Iterator[str]:
    """A method whose scores are neither cosines nor BM25: how many of its first words a card shares with the question."""

    def connect(index: Index, suite: Suite) -> Search:
        def search(questions: Sequence[Question], k: int) -> list[Ranked]:
            answers = []
            for question in questions:
                scores: dict[str, float] = {}
                for text, cards in zip(index.rows.texts, index.rows.cards, strict=True):
                    shared = len(set(text.split()[:8]) & set(question.text.split())) + len(cards) / 100
                    scores |= {card: max(shared, scores.get(card, 0.0)) for card in cards}
                hits = Hits.ranked(scores)
                answers.append(Ranked(Outcome.ANSWERED if hits.ids else Outcome.EMPTY, {"brought": hits}))
            return answers

        return search

    yield from declared(connect, "brought")


@pytest.fixture
def failing() -> Iterator[str]:
    """A method that gives no answer over an index in memory."""

    def connect(index: Index, suite: Suite) -> Search:
        return lambda questions, k: [Ranked(Outcome.RAISED, detail="needs its store") for _ in questions]

    yield from declared(connect, "failing")


@pytest.mark.parametrize("method", ["hybrid", "bm25", "exact", "dense", "brought"])
@pytest.mark.usefixtures("brought")
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
            change = Change(gone, Pieces(*indexed(suite, KnowledgeBase({"c05": kb.cards["c05"]}))))
        search = RETRIEVERS[method].connect(Index(*indexed(suite, kb)), suite)
        for _ in range(12):
            text = " ".join(draw.choices(WORDS, k=3))
            question = Question(text, "en", valid_at(DAY), vector_of(text))
            (expected,) = search([question], 3)
            ranking = variants.search(question, change)
            assert ranking.hits.ids == expected.lanes[method].ids
            assert ranking.hits.scores.tolist() == pytest.approx(expected.lanes[method].scores.tolist(), abs=2e-6)


def test_an_index_after_a_change_is_the_index_that_would_be_built(desk: Desk) -> None:
    """Rows that cards share stay for the others, and what is put beside them joins a row of the same text."""
    desk.cards = [{"id": f"c{n}", "text": "one and the same" if n < 3 else f"another {n}"} for n in range(5)]
    desk.case("a", gold="c0")
    before = desk.exam({"a": []})
    suite, gone = before.suite, frozenset({"c1", "c4"})
    added = KnowledgeBase({"c4": dataclasses.replace(before.kb.cards["c4"], text="one and the same")})
    changed = index_after(*indexed(suite, before.kb), Change(gone, Pieces(*indexed(suite, added))))
    cards = {**{name: card for name, card in before.kb.cards.items() if name not in gone}, **added.cards}
    built_rows, built_vectors = indexed(suite, KnowledgeBase(cards))
    assert (changed.rows.ids, changed.rows.texts, changed.rows.fields) == (built_rows.ids, built_rows.texts, built_rows.fields)
    assert (changed.rows.chunks, changed.rows.cards) == (built_rows.chunks, built_rows.cards)
    assert ("c0", "c2", "c4") in changed.rows.cards
    assert changed.vectors.tolist() == built_vectors.tolist()


def test_a_method_that_cannot_be_asked_in_memory_says_so(failing: str, desk: Desk, tmp_path: Path) -> None:
    desk.cards = knowledge(random.Random(2), 4)
    desk.case("a", gold="c00")
    exam = desk.exam({"a": []})
    retrieval = exam.suite.retrieval.model_copy(update={"method": failing})
    suite = exam.suite.model_copy(update={"retrieval": retrieval})
    variants = Variants(suite, *indexed(suite, exam.kb), tmp_path)
    with pytest.raises(Unmeasured, match="'failing' cannot be asked over an index in memory"):
        variants.search(Question("storm", "en", valid_at(DAY), vector_of("storm")), AS_IS)


def test_a_method_by_words_alone_needs_no_vectors(desk: Desk, tmp_path: Path) -> None:
    desk.cards = [{"id": word, "text": f"the {word}"} for word in WORDS]
    desk.case("a", gold="storm")
    exam = desk.exam({"a": []})
    retrieval = exam.suite.retrieval.model_copy(update={"method": "bm25"})
    suite = exam.suite.model_copy(update={"retrieval": retrieval})
    rows, _ = indexed(suite, exam.kb)
    none = np.empty((len(rows), 0), np.float32)
    variants = Variants(suite, rows, none, tmp_path)
    ranking = variants.search(Question("a storm", "en", valid_at(DAY), np.empty(0, np.float32)), AS_IS)
    assert ranking.hits.ids == ranking.words.ids == ("storm",)
    assert variants.similarity("storm", "ferry") == 0.0


def test_the_lexicon_is_kept_and_read_back(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kbgate.tasks.diagnosis.lexicon._KEPT_ABOVE", 1)
    desk.cards = knowledge(random.Random(2), 30)
    desk.case("a", gold="c00")
    exam = desk.exam({"a": []})
    rows, _ = indexed(exam.suite, exam.kb)
    standing, question = np.ones(len(rows), bool), terms("the storm and the captain", "en")
    first = bm25(question, [(analyse(rows, OURS, tmp_path), standing)])[0]
    (kept,) = (tmp_path / "terms").iterdir()
    unasked = dataclasses.replace(OURS, terms=lambda *_: pytest.fail("analysed again"))
    assert bm25(question, [(analyse(rows, unasked, tmp_path), standing)])[0].tolist() == first.tolist()
    whole = kept.read_bytes()
    for torn in (b"torn", whole[: len(whole) // 2], b""):
        kept.write_bytes(torn)
        assert bm25(question, [(analyse(rows, OURS, tmp_path), standing)])[0].tolist() == first.tolist()
    assert [path.name for path in (tmp_path / "terms").iterdir()] == [kept.name]


def test_nothing_is_found_of_an_index_from_which_all_is_gone(desk: Desk, tmp_path: Path) -> None:
    desk.cards = knowledge(random.Random(2), 4)
    desk.case("a", gold="c00")
    exam = desk.exam({"a": []})
    variants = Variants(exam.suite, *indexed(exam.suite, exam.kb), tmp_path)
    question = Question("storm", "en", valid_at(DAY), vector_of("storm"))
    assert variants.search(question, Change(frozenset(str(card["id"]) for card in desk.cards))).hits.ids == ()
