from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbgate.tasks.domain import KnowledgeBase
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.index import store as indexing
from kbgate.tasks.index.chunking import chunk
from kbgate.tasks.index.store import (
    build_rows,
    ef_search,
    ingest,
    no_embedder,
    open_search,
    open_store,
    reopen,
    temporary_store,
)
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.settings import Chunking, IndexSettings, Suite
from kbgate.tasks.tables import Rows
from tests.conftest import write_lines


def parts(folder: Path, cards: list[dict[str, Any]], **settings: Any) -> tuple[Suite, KnowledgeBase, Rows]:
    write_lines(folder / "cards.jsonl", cards)
    suite = Suite(folder=folder, name="x", chunking=Chunking(size=40, overlap=0), **settings)
    kb = load_cards(suite)
    return suite, kb, build_rows(suite, kb, chunk(suite, kb))


def unit(rows: Rows) -> Any:
    vectors = np.random.default_rng(1).standard_normal((len(rows), 16)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


FOOTER = "Published by the board, all rights."


def test_a_repeated_text_is_one_row_that_lists_its_cards(tmp_path: Path) -> None:
    cards = [{"id": f"c{n}", "text": f"Card number {n} says this.\n\n{FOOTER}", "language": "en"} for n in range(3)]
    cards.append({"id": "other", "text": f"Another.\n\n{'y' * 30}\n\n{FOOTER}", "language": "es"})
    _, _, rows = parts(tmp_path, cards)
    footers = [place for place, text in enumerate(rows.texts) if text == FOOTER]
    assert len(footers) == 2, "other filterable fields, another row"
    (shared,) = (place for place in footers if rows.languages[place] == "en")
    assert rows.cards[shared] == ("c0", "c1", "c2")
    assert list(rows.ids) == sorted(rows.ids)


def test_the_order_of_cards_does_not_matter(tmp_path: Path) -> None:
    cards = [{"id": f"c{n}", "text": f"Text {n}"} for n in range(9)]
    one, other = parts(tmp_path, cards)[2], parts(tmp_path, cards[::-1])[2]
    assert dataclasses.asdict(one) == dataclasses.asdict(other)


def test_what_goes_in_is_found_again(tmp_path: Path) -> None:
    suite, _, rows = parts(tmp_path, [{"id": f"c{n}", "text": f"Text {n}"} for n in range(30)])
    vectors = unit(rows)
    with temporary_store("b") as store:
        index = ingest(suite, rows, vectors, store, "build")
        nearest = open_search(index)
        for place in (0, 17, 29):
            hits = nearest(vectors[place], {"_starts": {"$lte": 10}}, 3)
            assert hits.ids[0] == rows.ids[place]
            assert hits.score(1) == pytest.approx(1, abs=1e-6)


def test_a_store_is_gone_afterwards_also_after_a_failure() -> None:
    folders: list[str] = []

    def fail() -> None:
        with temporary_store("b") as store:
            folders.append(store)
            indexing.open_store(store)
            raise ZeroDivisionError

    with temporary_store("b") as store:
        folders.append(store)
    with pytest.raises(ZeroDivisionError):
        fail()
    assert not any(map(os.path.exists, folders))
    assert not set(folders) & set(indexing._CLIENTS)


def test_what_a_new_client_reads_back_is_the_same_index(tmp_path: Path) -> None:
    cards = [{"id": f"c::{n}", "text": f"Text {n}\n\n{FOOTER}", "language": "es", "topics": ["t"]} for n in range(9)]
    cards.append({"id": "dated", "text": "x", "valid_until": "2026-01-01", "metadata": {}})
    suite, _, rows = parts(tmp_path, cards)
    with temporary_store("b") as store:
        index = ingest(suite, rows, unit(rows), store, "build")
        again = reopen(index)
    assert dataclasses.asdict(again.rows) == dataclasses.asdict(index.rows)
    assert np.allclose(again.vectors, index.vectors, atol=1e-6)  # cosine space: the store normalises once more


def test_a_new_client_reads_the_vectors_that_the_store_holds(tmp_path: Path) -> None:
    """Not those that went in: what is searched is what is examined."""
    suite, _, rows = parts(tmp_path, [{"id": f"c{n}", "text": f"Text {n}"} for n in range(3)])
    with temporary_store("b") as store:
        index = ingest(suite, rows, unit(rows), store, "build")
        assert not np.allclose(index.vectors[0], index.vectors[1])
        open_store(store).get_collection("build", embedding_function=no_embedder()).update(
            ids=[rows.ids[0]], embeddings=[index.vectors[1].tolist()]
        )
        again = reopen(index)
    assert np.allclose(again.vectors, index.vectors[[1, 1, 2]], atol=1e-6)


def test_two_runs_never_see_each_other(tmp_path: Path) -> None:
    suite, _, rows = parts(tmp_path, [{"id": "a", "text": "x"}])
    with temporary_store("b") as one, temporary_store("b") as other:
        ingest(suite, rows, unit(rows), one, "build")
        assert indexing.open_store(other).list_collections() == []


def test_a_store_that_lost_a_row_measures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store does not lose rows on request, so the collection it hands out is made to drop one."""
    suite, _, rows = parts(tmp_path, [{"id": f"c{n}", "text": f"Text {n}"} for n in range(4)])
    from chromadb.api.models.Collection import Collection

    add = Collection.add

    def lossy(self: Any, ids: list[str], embeddings: Any, documents: Any, metadatas: Any) -> None:
        add(self, ids=ids[1:], embeddings=embeddings[1:], documents=documents[1:], metadatas=metadatas[1:])

    monkeypatch.setattr(Collection, "add", lossy)
    with temporary_store("b") as store, pytest.raises(Unmeasured, match="holds 3 of 4 rows"):
        ingest(suite, rows, unit(rows), store, "build")


@pytest.mark.parametrize("spoil", [lambda v: v[:-1], lambda v: v * np.nan])
def test_vectors_that_are_missing_or_not_finite_are_refused(spoil: Any, tmp_path: Path) -> None:
    suite, _, rows = parts(tmp_path, [{"id": f"c{n}", "text": f"Text {n}"} for n in range(4)])
    with temporary_store("b") as store, pytest.raises(Unmeasured):
        ingest(suite, rows, spoil(unit(rows)), store, "build")


@pytest.mark.parametrize(("count", "expected"), [(3, 100), (600, 600), (10_000, 10_000), (10_001, 400)])
def test_auto_searches_all_of_a_small_index(count: int, expected: int) -> None:
    suite = Suite(folder=Path(), name="x")
    assert ef_search(suite, count) == expected
    assert ef_search(suite.model_copy(update={"index": IndexSettings(ef_search=10)}), count) == 10
