"""Production on a Chroma server: one collection per build, and the pointer in the metadata of a collection of its own.

The metadata are replaced in one update. Renaming collections is two steps; readers fall between them.
"""

from __future__ import annotations

import json
from pathlib import Path

from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.index.store import Client, Collection, no_embedder, open_store
from kbgate.tasks.production.pointer import NOTHING_SERVED, Pointer, is_build, parse


class ServerProduction:
    """A Chroma server: one collection per build, and a collection named as readers ask for it that holds the pointer."""

    def __init__(self, home: Path, suite: str, url: str, name: str):
        self.home, self._suite, self._url, self._name = home, suite, url, name

    def _client(self) -> Client:
        try:
            return open_store(self._url)
        except Exception as error:
            raise Unmeasured(f"the production server {self._url} cannot be reached ({error})") from None

    def _pointer_collection(self) -> Collection:
        # Chroma refuses a collection without any metadata update later, so it begins with the empty pointer.
        empty = {"pointer": json.dumps(NOTHING_SERVED.plain())}
        return self._client().get_or_create_collection(self._name, embedding_function=no_embedder(), metadata=empty)

    def read(self) -> Pointer:
        """The pointer in the collection's metadata."""
        names = {collection.name for collection in self._client().list_collections()}
        if self._name not in names:
            return NOTHING_SERVED
        text = str((self._pointer_collection().metadata or {}).get("pointer"))
        return parse(text.encode(), f"{self._url} {self._name}", self._suite)

    def move(self, pointer: Pointer) -> None:
        """Replace the metadata in one update."""
        self._pointer_collection().modify(metadata={"pointer": json.dumps(pointer.plain(), sort_keys=True)})

    def place(self, build: str) -> str:
        """The server, whatever the build."""
        return self._url

    def builds(self) -> list[str]:
        """The collections whose names are builds of this suite."""
        names = [collection.name for collection in self._client().list_collections()]
        return sorted(name for name in names if is_build(name, self._suite))

    def discard(self, build: str) -> None:
        """Delete a build's collection."""
        if build in self.builds():
            self._client().delete_collection(build)
