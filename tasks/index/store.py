"""Chunks made into the rows of an index, and the rows put into a throw-away Chroma store.

A row is one distinct (embedded text, filterable fields) and lists its chunks and cards: many identical vectors, such as one
footer on every card, break an HNSW graph whatever its parameters. Rows go in sorted by id, and `ef_search = "auto"` searches
all of a small index, because Chroma's default graph ranks differently at each build.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from kbgate.tasks.domain import Index, KnowledgeBase, Predicate
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.index.own_folder import own_folder
from kbgate.tasks.predicates import store_fields
from kbgate.tasks.records import canonical
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Chunks, Fields, Hits, Rows, Vectors

if TYPE_CHECKING:
    from chromadb import Documents, EmbeddingFunction

Client = Any
Collection = Any
"""Chroma's objects: what its types promise is less than what they take."""

_AUTO_UP_TO = 10_000
_BATCH = 1000
_CHUNKS, _CARDS = "_chunks", "_cards"
"""Metadata of a row in the store: what it stands for."""


def build_rows(suite: Suite, kb: KnowledgeBase, chunks: Chunks) -> Rows:
    """The rows of an index, by id, each with the chunks and cards it stands for."""
    fields = {card.id: store_fields(card, suite.kb.filterable) for card in kb.cards.values()}
    keys = {card: canonical(of_card) for card, of_card in fields.items()}
    first: dict[str, int] = {}
    members: dict[str, list[tuple[str, str]]] = {}
    for place, (chunk, card, text) in enumerate(zip(chunks.ids, chunks.cards, chunks.texts, strict=True)):
        row = hashlib.sha256(f"{len(text)}:{text}{keys[card]}".encode()).hexdigest()[:24]
        first.setdefault(row, place)
        members.setdefault(row, []).append((chunk, card))
    ids = sorted(first)
    of_rows = [sorted(members[row]) for row in ids]
    return Rows(
        ids=tuple(ids),
        texts=tuple(chunks.texts[first[row]] for row in ids),
        languages=tuple(kb.cards[chunks.cards[first[row]]].language for row in ids),
        fields=tuple(fields[chunks.cards[first[row]]] for row in ids),
        chunks=tuple(tuple(chunk for chunk, _ in of_row) for of_row in of_rows),
        cards=tuple(tuple(dict.fromkeys(card for _, card in of_row)) for of_row in of_rows),
    )


@contextlib.contextmanager
def temporary_store(build: str) -> Iterator[str]:
    """A folder for one run's store, its own whatever else runs, removed at the end whatever happens."""
    with own_folder() as folder:
        store = str(folder / "store")
        try:
            yield store
        finally:
            close_store(store)


_CLIENTS: dict[str, Client] = {}
"""Open clients by place: Chroma keeps one system a path alive, and a removed folder would live on in it."""


def open_store(place: str) -> Client:
    """The client of a store: a folder, or the URL of a server; one per place until it is closed."""
    if place not in _CLIENTS:
        _CLIENTS[place] = connect(place)
    return _CLIENTS[place]


def connect(place: str) -> Client:
    """A client of a store that is nobody else's; whoever connects closes it."""
    import chromadb
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    if not is_server(place):
        return chromadb.PersistentClient(path=place, settings=settings)
    url = urlsplit(place)
    port = url.port or (443 if url.scheme == "https" else 80)
    return chromadb.HttpClient(url.hostname or "", port, ssl=url.scheme == "https", settings=settings)


def is_server(place: str) -> bool:
    """Whether a store is a server's, by its URL, and not a folder."""
    return place.startswith(("http://", "https://"))


def close_store(place: str) -> None:
    """Close a store's client, so that the next one sees what is on disk and not what this one remembers."""
    client = _CLIENTS.pop(place, None)
    if client is not None:
        client.close()


def no_embedder() -> EmbeddingFunction[Documents]:
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
        def build_from_config(config: dict[str, object]) -> EmbeddingFunction[Documents]:
            return NoEmbedder()

        def get_config(self) -> dict[str, object]:
            return {}

    return NoEmbedder()


def ingest(suite: Suite, rows: Rows, vectors: Vectors, store: str, build: str) -> Index:
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
    collection = open_store(store).create_collection(
        build,
        embedding_function=no_embedder(),
        configuration={"hnsw": hnsw},
    )
    # A store holds vectors or nothing: rows that are ranked by words alone all point the same way.
    held = vectors if vectors.shape[1] else np.ones((len(rows), 1), np.float32)
    for at in range(0, len(rows), _BATCH):
        part = slice(at, at + _BATCH)
        stands_for = zip(rows.fields[part], rows.chunks[part], rows.cards[part], strict=True)
        collection.add(
            ids=list(rows.ids[part]),
            embeddings=held[part],
            documents=list(rows.texts[part]),
            metadatas=[{**fields, _CHUNKS: list(chunks), _CARDS: sorted(cards)} for fields, chunks, cards in stands_for],
        )
    _verify(collection, rows)
    return Index(rows, vectors, store, build)


def _verify(collection: Collection, rows: Rows) -> None:
    count = collection.count()
    if count != len(rows):
        raise Unmeasured(f"the store holds {count} of {len(rows)} rows")
    stored: set[str] = set()
    for at in range(0, count, _BATCH):
        stored.update(collection.get(limit=_BATCH, offset=at, include=[])["ids"])
    lost = set(rows.ids) - stored
    if lost:
        raise Unmeasured(f"the store lost {len(lost)} of {len(rows)} rows, {min(lost)} among them")


def reopen(index: Index) -> Index:
    """The same index through a new client, as a reader finds it: rows and vectors are what the store holds."""
    assert index.store is not None
    stored = read_index(index.store, index.build)
    if set(stored.rows.ids) != set(index.rows.ids):
        raise Unmeasured(f"the store gives {len(stored.rows)} rows after reopening, {len(index.rows)} went in")
    return stored if index.vectors.shape[1] else Index(stored.rows, index.vectors, index.store, index.build)


def read_index(store: str, build: str) -> Index:
    """An index as its store holds it, read through a new client."""
    close_store(store)
    collection = open_store(store).get_collection(build, embedding_function=no_embedder())
    stored: dict[str, tuple[str, Fields, list[str], Vectors]] = {}
    for at in range(0, collection.count(), _BATCH):
        page = collection.get(limit=_BATCH, offset=at, include=["documents", "metadatas", "embeddings"])
        columns = (page["ids"], page["documents"] or [], page["metadatas"] or [], page["embeddings"])
        for row, text, metadata, vector in zip(*columns, strict=True):
            stored[row] = (text, *_read_back(row, dict(metadata)), np.asarray(vector, dtype=np.float32))
    if not stored:
        raise Unmeasured(f"the store holds no row of {build}")
    ids = sorted(stored)
    rows = Rows(
        ids=tuple(ids),
        texts=tuple(stored[row][0] for row in ids),
        languages=tuple(str(stored[row][1].get("language", "")) for row in ids),
        fields=tuple(stored[row][1] for row in ids),
        chunks=tuple(tuple(stored[row][2]) for row in ids),
        cards=tuple(tuple(dict.fromkeys(_card_of(chunk) for chunk in stored[row][2])) for row in ids),
    )
    return Index(rows, np.stack([stored[row][3] for row in ids]), store, build)


def _read_back(row: str, metadata: dict[str, Any]) -> tuple[Fields, list[str]]:
    """A row's filterable fields and its chunks, as its metadata hold them."""
    fields = {name: value for name, value in metadata.items() if name not in (_CHUNKS, _CARDS)}
    chunks = sorted(str(chunk) for chunk in metadata[_CHUNKS])
    if sorted({_card_of(chunk) for chunk in chunks}) != sorted(str(card) for card in metadata[_CARDS]):
        raise Unmeasured(f"row {row} of the store lists chunks of other cards than it names")
    return fields, chunks


def _card_of(chunk: str) -> str:
    """A chunk's id is `<card>::<nn>`."""
    return chunk.rpartition("::")[0]


def ef_search(suite: Suite, count: int) -> int:
    """How many rows a search looks at: all of a small index, so that every build of it ranks alike."""
    if suite.index.ef_search != "auto":
        return suite.index.ef_search
    return max(count, suite.retrieval.candidates) if count <= _AUTO_UP_TO else 400


def open_search(index: Index) -> Callable[[Vectors, Predicate, int], Hits]:
    """A search of the store: the rows nearest to a vector among those that satisfy `where`, with their cosine similarity."""
    assert index.store is not None
    collection = open_store(index.store).get_collection(index.build, embedding_function=no_embedder())

    def nearest(vector: Vectors, where: Predicate, count: int) -> Hits:
        answer = collection.query(
            query_embeddings=vector[None, :],
            n_results=count,
            where=dict(where),
            include=["distances"],
        )
        distances = answer["distances"] or [[]]
        return Hits(tuple(answer["ids"][0]), 1.0 - np.asarray(distances[0], dtype=float))

    return nearest
