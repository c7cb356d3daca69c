"""Builds and pointers for the tests of production: named as kbgate names them, filled with three rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.index.store import Collection, close_store, no_embedder, open_store
from kbgate.tasks.production.contents import contents_of
from kbgate.tasks.production.places import candidate
from kbgate.tasks.production.pointer import Contents, Examined, Pointer, Production, Target
from kbgate.tasks.schema import Fingerprints

NOW = dt.datetime(2026, 6, 1, 3, 0, tzinfo=dt.UTC)
ROWS = 3


def build(number: int, suite: str = "faq") -> str:
    return f"{suite}-{number:016x}-20260601T02300{number}Z-abcdef"


def target(number: int, suite: str = "faq", contents: Contents | None = None) -> Target:
    name, marks = build(number, suite), Fingerprints(index="a" * 16, golden="b" * 16, policy="c" * 16, baseline="d" * 16)
    return Target(
        build=name,
        place=f"versions/{name}",
        promoted="2026-06-01T02:30:00+00:00",
        verdict=Examined(verdict=VerdictName.PASS, run="20260601T023000Z-abcdef", fingerprints=marks),
        contents=contents or Contents(rows=ROWS, digest="e" * 64),
    )


def serve(production: Production, number: int, *previous: int) -> Pointer:
    """Move the pointer to a build, with these before it."""
    of = production.suite or "faq"
    pointer = production.read().then("promoted", target(number, of), tuple(target(n, of) for n in previous), NOW)
    production.move(pointer)
    return pointer


def fill(production: Production, name: str, rows: int = ROWS) -> Contents:
    """A finished candidate, and what it holds."""
    with candidate(production, name) as place:
        collection = open_store(place).create_collection(name, embedding_function=no_embedder())
        ids = [f"r{n}" for n in range(rows)]
        cards = [{"_cards": [f"c{n}"], "language": "en"} for n in range(rows)]
        collection.add(ids=ids, embeddings=np.eye(rows, 4, dtype=np.float32), documents=ids, metadatas=cards)
    return contents_of(production, name)


@contextmanager
def opened(production: Production, name: str) -> Iterator[Collection]:
    """A build's collection, for who changes it by hand."""
    place = production.place(name)
    try:
        yield open_store(place).get_collection(name, embedding_function=no_embedder())
    finally:
        close_store(place)
