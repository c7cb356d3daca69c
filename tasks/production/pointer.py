"""The Chroma that serves, and the one pointer its readers follow.

Every build is a collection of its own and is never changed after it was examined; what moves is one pointer, in one step.
In a folder the pointer is the file CURRENT beside one folder per build (write, fsync, replace, fsync the folder): a second
process with a client open on a folder sees new counts and old query results, so builds never share one. On a server it is
the metadata of a pointer collection, replaced in one update. Renaming collections is two steps; readers fall between them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, Protocol

from filelock import FileLock, Timeout, has_fcntl
from pydantic import Field, ValidationError

from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.errors import Problem, Refused, Unmeasured
from kbgate.tasks.index.store import Client, Collection, close_store, no_embedder, open_store
from kbgate.tasks.records import parse_json, problems_of, write_text
from kbgate.tasks.schema import Document, Fingerprints
from kbgate.tasks.settings import Suite

POINTER = "CURRENT"
SCHEMA: Final = 1
_LOCK_WAIT_S = 600.0


class Examined(Document):
    """The exam that let a build in."""

    verdict: VerdictName
    run: str
    fingerprints: Fingerprints


class Target(Document):
    """One promoted build."""

    build: str
    """The collection's name."""
    place: str
    """The folder, relative to the pointer, or the URL of the server."""
    promoted: str
    """When the pointer moved to it first, ISO, UTC."""
    verdict: Examined


class Pointer(Document):
    """What is served, and what was served before, newest first."""

    schema_: Literal[1] = Field(default=SCHEMA, alias="schema")
    target: Target | None
    previous: tuple[Target, ...]


NOTHING_SERVED = Pointer(target=None, previous=())


def is_build(name: str, suite: str) -> bool:
    """Whether a name is that of a build of this suite, and of no other whose name begins alike."""
    return re.fullmatch(rf"{re.escape(suite)}-[0-9a-f]{{16}}-[0-9]{{8}}T[0-9]{{6}}Z-[0-9a-f]{{6}}", name) is not None


class Production(Protocol):
    """A Chroma that serves one suite."""

    home: Path
    """Where its lock and its audit trail are kept, on this machine."""

    def read(self) -> Pointer:
        """The pointer as it stands; an empty one where nothing was ever promoted."""

    def move(self, pointer: Pointer) -> None:
        """Replace the pointer in one step; after a crash it is the old one or the new one."""

    def place(self, build: str) -> str:
        """Where a build's collection is opened: a folder or a URL."""

    def builds(self) -> list[str]:
        """Every build that is there, served or not."""

    def discard(self, build: str) -> None:
        """Remove a build."""


class FolderProduction:
    """A folder: CURRENT, and versions/<build>/, each a Chroma store of its own."""

    def __init__(self, home: Path, suite: str):
        self.home, self._suite = home, suite

    def read(self) -> Pointer:
        """The pointer in CURRENT."""
        file = self.home / POINTER
        return _parse(file.read_bytes(), str(file), self._suite) if file.exists() else NOTHING_SERVED

    def move(self, pointer: Pointer) -> None:
        """Replace CURRENT."""
        write_text(self.home / POINTER, json.dumps(pointer.plain(), indent=2, sort_keys=True) + "\n")

    def place(self, build: str) -> str:
        """The folder of a build."""
        return str(self.home / "versions" / build)

    def builds(self) -> list[str]:
        """The folders that are there."""
        folder = self.home / "versions"
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted(name for name in names if is_build(name, self._suite))

    def discard(self, build: str) -> None:
        """Remove a build's folder."""
        close_store(self.place(build))
        shutil.rmtree(self.place(build), ignore_errors=True)


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
        return _parse(text.encode(), f"{self._url} {self._name}", self._suite)

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


def open_production(suite: Suite, home: Path) -> Production:
    """The production of a suite, as its [production] says; a folder under kbgate's home where it says nothing."""
    settings = suite.production
    default = (home / "production" / suite.name).resolve()
    if settings.url:
        # One folder a machine, whatever home a run has: two homes that promote to one server must share its lock.
        key = hashlib.sha256(f"{settings.url} {settings.collection or suite.name}".encode()).hexdigest()[:16]
        default = Path(tempfile.gettempdir()) / f"kbgate-server-{key}"
        return ServerProduction(default, suite.name, settings.url, settings.collection or suite.name)
    return FolderProduction((suite.folder / settings.path).resolve() if settings.path else default, suite.name)


@contextlib.contextmanager
def locked(production: Production) -> Iterator[None]:
    """Hold the production's lock: comparison and promotion happen under one, so that no two pass against one baseline.

    A kernel lock: it is gone with the process that held it, however that one ended. Waits ten minutes, then `Refused`.
    """
    production.home.mkdir(parents=True, exist_ok=True)
    path = production.home / ".lock"
    if os.name != "nt" and not has_fcntl:
        raise Unmeasured(f"{path} needs a lock of the kernel, and this Python has none (fcntl); promote from one that has")
    # Every call has a lock of its own, so that two in one process exclude each other. Never a soft lock, which is a mere
    # file: one whose holder was killed would be held for ever.
    lock = FileLock(path, _LOCK_WAIT_S, thread_local=False, poll_interval=0.05, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise Refused(f"another promotion holds {path} for ten minutes") from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def candidate(production: Production, build: str) -> Iterator[str]:
    """The place of a new build, its client closed at the end; a build that could not be finished is removed."""
    place = production.place(build)
    try:
        if "://" not in place:
            Path(place).mkdir(parents=True)
        yield place
    except BaseException:
        production.discard(build)
        raise
    finally:
        close_store(place)


def sweep(production: Production) -> None:
    """Remove builds the pointer does not name: what a killed promotion left, what is older than `keep`.

    The caller holds the lock, so no other promotion's candidate is among them.
    """
    pointer = production.read()
    if pointer.target is None:
        # No pointer, or one that was moved away: nothing says which of the builds are rubbish.
        return
    served = {target.build for target in (pointer.target, *pointer.previous) if target}
    for build in production.builds():
        if build not in served:
            production.discard(build)


def resolve(home: Path) -> tuple[Target, str]:
    """For readers: what is served from a production folder, and the folder of its store. Raises `Refused` for none.

    Read it again when it may have moved, and open a new client when it has.
    """
    target = FolderProduction(home, "").read().target
    if target is None:
        raise Refused(f"nothing was ever promoted to {home}")
    return target, str(home / target.place)


def _parse(text: bytes, where: str, suite: str) -> Pointer:
    """A pointer as it was written; `suite`: the one it must be of, any if ""."""
    try:
        pointer = Pointer.of(parse_json(text.decode("utf-8")))
    except ValueError as error:
        detail = str(error)
        if isinstance(error, ValidationError):
            detail = next(problems_of(error, where, 0, Pointer)).sentence
        sentence = f"is no pointer kbgate wrote ({detail}); restore it: the builds beside it are untouched"
        raise Refused(str(Problem(where, 0, sentence))) from None
    targets = [target for target in (pointer.target, *pointer.previous) if target]
    strange = [target.build for target in targets if suite and not is_build(target.build, suite)]
    if strange:
        sentence = f"serves '{strange[0]}', which is no build of '{suite}'; give each suite a place of its own"
        raise Refused(str(Problem(where, 0, sentence)))
    return pointer
