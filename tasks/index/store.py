"""Chunks made into the rows of an index, and the rows put into a throw-away Chroma store.

A row is one distinct (embedded text, filterable fields) and lists its chunks and cards: many identical vectors, such as one
footer on every card, break an HNSW graph whatever its parameters. Rows go in sorted by id, and `ef_search = "auto"` searches
all of a small index, because Chroma's default graph ranks differently at each build.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from kbgate.tasks.domain import Index, KnowledgeBase
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.index.vectors import Vectors
from kbgate.tasks.predicates import store_fields
from kbgate.tasks.records import canonical
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import MEMBER_COLUMNS, ROW_COLUMNS, rows_of

_AUTO_UP_TO = 10_000
_BATCH = 1000


def build_rows(suite: Suite, kb: KnowledgeBase, chunks: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows of an index (`ROW_COLUMNS`, by id) and their members (`MEMBER_COLUMNS`, by row and chunk)."""
    fields = {card["id"]: store_fields(card, suite.kb.filterable) for card in rows_of(kb.cards)}
    languages = kb.cards.set_index("id")["language"].to_dict()
    keys = {card: canonical(of_card) for card, of_card in fields.items()}
    rows: dict[str, tuple[str, str, str, dict[str, Any]]] = {}
    members = []
    for piece in rows_of(chunks):
        text, card = piece["text"], piece["card"]
        row = hashlib.sha256(f"{len(text)}:{text}{keys[card]}".encode()).hexdigest()[:24]
        rows[row] = (row, text, languages[card], fields[card])
        members.append((row, piece["id"], card))
    return (
        pd.DataFrame([rows[row] for row in sorted(rows)], columns=list(ROW_COLUMNS)),
        pd.DataFrame(sorted(members), columns=list(MEMBER_COLUMNS)),
    )


@contextlib.contextmanager
def temporary_store(build: str) -> Iterator[str]:
    """A folder for one run's store, its own whatever else runs, removed at the end whatever happens."""
    folder = tempfile.mkdtemp(prefix="kbgate-")
    try:
        yield folder
    finally:
        close_store(folder)
        shutil.rmtree(folder, ignore_errors=True)


_CLIENTS: dict[str, Any] = {}
"""Open clients by place: Chroma keeps one system a path alive, and a removed folder would live on in it."""


def open_store(place: str) -> Any:
    """The client of a store: a folder, or the URL of a server; one per place until it is closed."""
    if place not in _CLIENTS:
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        if place.startswith(("http://", "https://")):
            url = urlsplit(place)
            port = url.port or (443 if url.scheme == "https" else 80)
            _CLIENTS[place] = chromadb.HttpClient(url.hostname or "", port, ssl=url.scheme == "https", settings=settings)
        else:
            _CLIENTS[place] = chromadb.PersistentClient(path=place, settings=settings)
    return _CLIENTS[place]


def close_store(place: str) -> None:
    """Close a store's client, so that the next one sees what is on disk and not what this one remembers."""
    client = _CLIENTS.pop(place, None)
    if client is not None:
        client.close()


def no_embedder() -> Any:
    """An embedding function that refuses: `None` would let Chroma fetch a model of its own."""
    from chromadb import Documents, EmbeddingFunction, Embeddings

    class NoEmbedder(EmbeddingFunction[Documents]):
        def __init__(self) -> None:
            pass

        def __call__(self, input: Documents) -> Embeddings:
            raise RuntimeError("kbgate gives every vector itself")

        @staticmethod
        def name() -> str:
            return "kbgate-none"

        @staticmethod
        def build_from_config(config: dict[str, Any]) -> EmbeddingFunction[Documents]:
            return NoEmbedder()

        def get_config(self) -> dict[str, Any]:
            return {}

    return NoEmbedder()


def ingest(suite: Suite, rows: pd.DataFrame, members: pd.DataFrame, vectors: Vectors, store: str, build: str) -> Index:
    """Put the rows into the collection `build` of `store` and read back what arrived; `Unmeasured` if anything is short.

    A row's document is its embedded text; its metadata are the filterable fields and the `_chunks` and `_cards` it stands for.
    """
    if len(rows) != len(vectors) or not np.isfinite(vectors).all():
        raise Unmeasured(f"{len(rows)} rows but {len(vectors)} finite vectors: nothing to ingest")
    settings = suite.index
    hnsw = {
        "space": settings.space,
        "max_neighbors": settings.max_neighbors,
        "ef_construction": settings.ef_construction,
        "ef_search": ef_search(suite, len(rows)),
    }
    collection = open_store(store).create_collection(build, embedding_function=no_embedder(), configuration={"hnsw": hnsw})
    chunks: dict[str, list[str]] = {}
    cards: dict[str, list[str]] = {}
    for member in rows_of(members):
        chunks.setdefault(member["row"], []).append(member["chunk"])
        cards.setdefault(member["row"], []).append(member["card"])
    for at in range(0, len(rows), _BATCH):
        part = rows_of(rows.iloc[at : at + _BATCH])
        collection.add(
            ids=[row["id"] for row in part],
            embeddings=vectors[at : at + _BATCH],
            documents=[row["text"] for row in part],
            metadatas=[
                {**row["fields"], "_chunks": chunks[row["id"]], "_cards": sorted(set(cards[row["id"]]))} for row in part
            ],
        )
    _verify(collection, rows)
    return Index(rows, members, vectors, store, build)


def _verify(collection: Any, rows: pd.DataFrame) -> None:
    count = collection.count()
    if count != len(rows):
        raise Unmeasured(f"the store holds {count} of {len(rows)} rows")
    stored: set[str] = set()
    for at in range(0, count, _BATCH):
        stored.update(collection.get(limit=_BATCH, offset=at, include=[])["ids"])
    lost = set(rows["id"]) - stored
    if lost:
        raise Unmeasured(f"the store lost {len(lost)} of {len(rows)} rows, {min(lost)} among them")


def reopen(index: Index) -> Index:
    """The same index through a new client, as a reader finds it: rows, vectors and members are what the store holds."""
    close_store(index.store)
    collection = open_store(index.store).get_collection(index.build, embedding_function=no_embedder())
    rows: list[tuple[str, str, str, dict[str, Any]]] = []
    members: list[tuple[str, str, str]] = []
    vectors: list[Any] = []
    for at in range(0, collection.count(), _BATCH):
        page = collection.get(limit=_BATCH, offset=at, include=["documents", "metadatas", "embeddings"])
        columns = (page["ids"], page["documents"], page["metadatas"], page["embeddings"])
        for row, text, stored, vector in zip(*columns, strict=True):
            fields = {name: value for name, value in stored.items() if name not in ("_chunks", "_cards")}
            # A chunk's id is `<card>::<nn>`.
            own = [(row, chunk, chunk.rpartition("::")[0]) for chunk in stored["_chunks"]]
            if sorted({card for *_, card in own}) != sorted(stored["_cards"]):
                raise Unmeasured(f"row {row} of the store lists chunks of other cards than it names")
            rows.append((row, text, fields.get("language", ""), fields))
            members += own
            vectors.append(vector)
    order = sorted(range(len(rows)), key=lambda place: rows[place][0])
    found = Index(
        pd.DataFrame([rows[place] for place in order], columns=list(ROW_COLUMNS)),
        pd.DataFrame(sorted(members), columns=list(MEMBER_COLUMNS)),
        np.asarray([vectors[place] for place in order], dtype=np.float32),
        index.store,
        index.build,
    )
    if len(found.rows) != len(index.rows) or set(found.rows["id"]) != set(index.rows["id"]):
        raise Unmeasured(f"the store gives {len(found.rows)} rows after reopening, {len(index.rows)} went in")
    return found


def ef_search(suite: Suite, count: int) -> int:
    """How many rows a search looks at: all of a small index, so that every build of it ranks alike."""
    if suite.index.ef_search != "auto":
        return suite.index.ef_search
    return max(count, suite.retrieval.candidates) if count <= _AUTO_UP_TO else 400


def open_search(index: Index) -> Callable[[Vectors, dict[str, Any], int], list[tuple[str, float]]]:
    """A search of the store: the (row id, cosine similarity) pairs nearest to a vector among the rows that satisfy `where`."""
    collection = open_store(index.store).get_collection(index.build, embedding_function=no_embedder())

    def nearest(vector: Vectors, where: dict[str, Any], count: int) -> list[tuple[str, float]]:
        found = collection.query(query_embeddings=vector[None, :], n_results=count, where=where, include=["distances"])
        return [(row, 1.0 - float(d)) for row, d in zip(found["ids"][0], found["distances"][0], strict=True)]

    return nearest
