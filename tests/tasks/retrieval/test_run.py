"""Retrieval over a real store: every method, filters and access before the cut, and what a faulty retriever comes to."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbgate.tasks.domain import Cases, Index, Mode, Outcome, Question, Ranked
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.index.chunking import chunk
from kbgate.tasks.index.embedding import embed_queries, embed_rows
from kbgate.tasks.index.models import identify_model
from kbgate.tasks.index.store import build_rows, ingest, temporary_store
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.golden import load_golden
from kbgate.tasks.results import Run
from kbgate.tasks.retrieval import RETRIEVERS, Retriever, ScoreKind
from kbgate.tasks.retrieval.lanes import each
from kbgate.tasks.retrieval.run import retrieve
from kbgate.tasks.settings import Kb, Retrieval, Suite
from kbgate.tasks.tables import Hits
from tests.conftest import write_lines

TODAY = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
CARDS = [
    {"id": "cat", "text": "A cat sleeps sixteen hours a day.", "metadata": {"who": "all"}},
    {"id": "dog", "text": "A dog needs a walk three times a day.", "metadata": {"who": "all"}},
    {"id": "vet", "text": "Veterinary dosage of cat and dog medicines.", "metadata": {"who": "staff"}},
    {"id": "old", "text": "Cats must be kept indoors (rule of 2024).", "valid_until": "2025-12-31", "metadata": {"who": "all"}},
    {"id": "fish", "text": "Fish live in water of 24 degrees.", "metadata": {"who": "all"}, "tier": "gold"},
]
CASES = [
    {"id": "sleep", "query": "how long do cats sleep", "expected": ["cat"]},
    {"id": "public", "query": "how much medicine for my dog", "expected": ["vet"], "entitled": {"who": "all"}},
    {"id": "water", "query": "how warm should the aquarium be", "expected": ["fish"], "filter": {"tier": "gold"}},
]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    write_lines(tmp_path / "cards.jsonl", CARDS)
    write_lines(tmp_path / "golden.jsonl", CASES)
    return Suite(folder=tmp_path, name="pets", kb=Kb(filterable=("who",)), top_k=3, k_values=(1, 3))


@contextmanager
def asked(suite: Suite, home: Path) -> Iterator[tuple[Index, Callable[[str], Run], Cases]]:
    kb, golden = load_cards(suite), load_golden(suite)
    rows = build_rows(suite, kb, chunk(suite, kb))
    model = identify_model(suite)
    with temporary_store("b") as store:
        index = ingest(suite, rows, embed_rows(suite, model, rows, home), store, "build")
        vectors = embed_queries(suite, model, golden.cases, home)

        def ask(method: str) -> Run:
            other = suite.model_copy(update={"retrieval": Retrieval(method=method, timeout_s=0.5)})
            return retrieve(other, index, golden.cases, vectors, TODAY, Mode.FULL)

        yield index, ask, golden.cases


@pytest.mark.parametrize("method", ["exact", "dense", "bm25", "hybrid"])
def test_validity_filter_and_access_hold_in_every_method(method: str, suite: Suite, home: Path) -> None:
    with asked(suite, home) as (_, ask, _cases):
        run = ask(method)
    assert all(answer.outcome.measured for answer in run.answers.values())
    cards = {case: {card for lane in run.lanes for card in run.of(lane, case).ids} for case in run.answers}
    assert not any("old" in of_case for of_case in cards.values())
    assert "vet" not in cards["public"]
    assert cards["water"] <= {"fish"}
    assert {case: answer.eligible for case, answer in run.answers.items()} == {"sleep": 4, "public": 3, "water": 1}
    if method != "bm25":
        assert run.of(method, "sleep").ids[0] == "cat"


def test_the_store_and_exact_search_agree(suite: Suite, home: Path) -> None:
    with asked(suite, home) as (_, ask, _cases):
        dense, exact = ask("dense"), ask("exact")
    for case in exact.answers:
        assert dense.of("dense", case).ids == exact.of("exact", case).ids
        assert np.abs(dense.of("exact", case).scores - exact.of("exact", case).scores).max() < 1e-6


def test_lexical_search_gives_only_rows_with_a_word_of_the_question(suite: Suite, home: Path) -> None:
    with asked(suite, home) as (_, ask, _cases):
        run = ask("bm25")
    assert all((hits.scores > 0).all() for hits in run.lanes["bm25"].values())
    assert run.of("bm25", "water").ids == ()
    assert run.answers["water"].outcome == Outcome.EMPTY


def faulty(kind: str) -> Callable[[Question, int], Ranked]:
    def answer(question: Question, k: int) -> Ranked:
        good = [("cat", 0.9), ("dog", 0.8), ("fish", 0.7)]
        if "cats" not in question.text:
            return Ranked(Outcome.ANSWERED, {"faulty": Hits.of(good if "aquarium" not in question.text else [("fish", 1.0)])})
        if kind == "raises":
            raise ConnectionError("gone")
        if kind == "late":
            import time

            time.sleep(0.6)
        hits = {
            "nothing": [], "short": good[:2], "twice": [good[0], good[0], good[1]], "unknown": [("zz", 1.0), *good[:2]],
            "nan": [("cat", math.nan), *good[1:]], "infinite": [("cat", math.inf), *good[1:]],
        }.get(kind, good)  # fmt: skip
        return Ranked(Outcome.ANSWERED, {"faulty": Hits.of(hits)})

    return answer


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("fine", "answered"), ("raises", "raised"), ("late", "timeout"), ("nothing", "malformed"), ("short", "malformed"),
        ("twice", "malformed"), ("unknown", "malformed"), ("nan", "malformed"), ("infinite", "malformed"),
    ],
)  # fmt: skip
def test_what_a_faulty_retriever_comes_to(
    kind: str, outcome: str, suite: Suite, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Retriever("faulty", lambda index, suite: each(faulty(kind)), ScoreKind.OTHER)
    monkeypatch.setitem(RETRIEVERS._load(), "faulty", part)
    with asked(suite, home) as (_, ask, _cases):
        run = ask("faulty")
    assert run.answers["sleep"].outcome == outcome
    assert run.answers["public"].outcome == Outcome.ANSWERED
    assert bool(run.of("faulty", "sleep").ids) == (outcome == "answered")


def test_an_answer_for_each_question_or_nothing_was_measured(suite: Suite, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(index: Index, suite: Suite) -> Any:
        return lambda questions, k: each(faulty("fine"))(questions, k)[:-1]

    monkeypatch.setitem(RETRIEVERS._load(), "faulty", Retriever("faulty", connect, ScoreKind.OTHER))
    with asked(suite, home) as (_, ask, _cases), pytest.raises(Unmeasured, match="answered 2 of 3 questions"):
        ask("faulty")


@pytest.mark.parametrize(("least", "count"), [(0.0, 3), (0.99, 0)])
def test_what_is_less_alike_than_allowed_is_not_answered(least: float, count: int, suite: Suite, home: Path) -> None:
    other = suite.model_copy(update={"retrieval": Retrieval(method="exact", min_similarity=least)})
    with asked(suite, home) as (index, _, cases):
        vectors = embed_queries(suite, identify_model(suite), cases, home)
        run = retrieve(other, index, cases, vectors, TODAY, Mode.FULL)
    hits = run.of("exact", "sleep")
    assert (hits.scores >= least).all()
    assert min(len(hits), count) == count
    assert run.answers["sleep"].outcome == (Outcome.ANSWERED if count else Outcome.EMPTY)


def test_a_threshold_excuses_no_short_list(suite: Suite, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        RETRIEVERS._load(), "faulty", Retriever("faulty", lambda index, suite: each(faulty("short")), ScoreKind.OTHER)
    )
    other = suite.model_copy(update={"retrieval": Retrieval(method="faulty", min_similarity=-1.0)})
    with asked(suite, home) as (index, _, cases):
        run = retrieve(other, index, cases, embed_queries(suite, identify_model(suite), cases, home), TODAY, Mode.FULL)
    assert run.answers["sleep"].outcome == Outcome.MALFORMED
