"""Numbered names on a Chroma server: the one atomic step it offers is creating a collection that must not exist.

`modify` is unconditional, renaming is two steps, and a name that is deleted and created at once can end with two owners. So
what must be exclusive is a series of names, each created once with all it says, and the highest number counts.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Final

from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.index.store import Client, no_embedder

KEPT: Final = 5
"""Numbers of a series that stay; more than one, so that who wakes up late finds its number taken."""

Metadata = Mapping[str, str | int | float | bool]
Listing = Mapping[str, Metadata]
"""What a server holds in one look: the names of its collections, and what each says."""


def look(client: Client, url: str) -> Listing:
    """Every collection of a server, in one request."""
    try:
        return {collection.name: collection.metadata or {} for collection in client.list_collections()}
    except Exception as error:
        raise Unmeasured(f"the production server {url} cannot be read ({error})") from None


def numbers(listing: Listing, stem: str) -> dict[int, Metadata]:
    """The members of a series by number, in order."""
    written = re.compile(rf"{re.escape(stem)}\.([1-9][0-9]{{0,11}})")
    matches = ((written.fullmatch(name), metadata) for name, metadata in listing.items())
    return dict(sorted((int(match[1]), metadata) for match, metadata in matches if match))


def create(client: Client, name: str, metadata: Metadata) -> None:
    """Create a collection that must not exist, with all it says, in one call; raises whatever the server says."""
    client.create_collection(name, embedding_function=no_embedder(), metadata=dict(metadata))


def prune(client: Client, listing: Listing, stem: str) -> None:
    """Delete all but the last numbers of a series; one that cannot be deleted now is deleted another time."""
    there = numbers(listing, stem)
    for number in there:
        if number <= max(there) - KEPT:
            with contextlib.suppress(Exception):
                client.delete_collection(f"{stem}.{number}")
