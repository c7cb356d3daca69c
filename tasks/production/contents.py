"""What a build holds: counted and digested when it is let in, and held against that before it is served or called served."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kbgate.tasks.errors import Refused, Unmeasured
from kbgate.tasks.index.store import Collection, close_store, is_server, no_embedder, open_store
from kbgate.tasks.production.pointer import Contents, Production, Target
from kbgate.tasks.records import canonical

_PAGE: Final = 10_000
"""Rows a page: a server takes no more than 32,000 at once, and small pages cost as much each as large ones."""
_STORE: Final = "chroma.sqlite3"
_NEXT: Final = "next: kbgate promote, or kbgate rollback to one that is whole"


def contents_of(production: Production, build: str) -> Contents:
    """Count and digest of a build, read through a new client; raises `Refused` where it cannot be opened or read."""
    place = production.place(build)
    close_store(place)  # an open client of a folder answers from what it knew
    try:
        collection = _opened(place, build)
        rows: dict[str, bytes] = {}
        count = collection.count()
        for at in range(0, count, _PAGE):
            page = collection.get(limit=_PAGE, offset=at, include=["documents", "metadatas"])
            columns = (page["ids"], page["documents"] or [], page["metadatas"] or [])
            for row, text, metadata in zip(*columns, strict=True):
                rows[row] = hashlib.sha256(canonical([row, text, _plain(metadata or {})]).encode()).digest()
    except Exception as error:
        raise Refused(f"{build} cannot be opened ({error}); production stays as it is") from None
    finally:
        close_store(place)
    if len(rows) != count:
        raise Refused(f"{build} gives {len(rows)} of {count} rows; production stays as it is")
    state = hashlib.sha256()
    for row in sorted(rows):
        state.update(rows[row])
    return Contents(rows=count, digest=state.hexdigest())


def count_of(production: Production, build: str) -> int:
    """The rows of a build, 0 where it is not there; raises `Unmeasured` where nobody can tell."""
    if build not in production.builds():
        return 0
    place = production.place(build)
    try:
        return int(_opened(place, build).count())
    except FileNotFoundError:
        return 0
    except Exception as error:
        raise Unmeasured(f"{build} cannot be counted ({error})") from None
    finally:
        close_store(place)


def verify(production: Production, target: Target) -> None:
    """Raise `Refused` unless a target holds what it held when it was let in, or anything where nobody wrote that down."""
    found = contents_of(production, target.build)
    written = target.contents
    if found.rows == 0:
        raise Refused(f"{target.build} is empty; {_NEXT}")
    if written is None:
        return
    if found.rows != written.rows:
        raise Refused(f"{target.build} is damaged: it holds {found.rows} of {written.rows} rows; {_NEXT}")
    if found.digest != written.digest:
        raise Refused(f"{target.build} is damaged: its {found.rows} rows are not those that were let in; {_NEXT}")


def _opened(place: str, build: str) -> Collection:
    # Chroma makes the store it does not find.
    if not is_server(place) and not Path(place, _STORE).is_file():
        raise FileNotFoundError("it was removed")
    return open_store(place).get_collection(build, embedding_function=no_embedder())


def _plain(metadata: Mapping[str, object]) -> dict[str, object]:
    """A row's metadata; a list of them is a set."""
    return {name: sorted(value) if isinstance(value, list) else value for name, value in metadata.items()}
