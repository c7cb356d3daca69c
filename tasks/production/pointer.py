"""The pointer: what is served and what was served before, as the one document readers follow.

Every build is a collection of its own and is never changed after it was examined; what moves is one pointer, in one step.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal, Protocol

from pydantic import Field, ValidationError

from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.errors import Problem, Refused
from kbgate.tasks.records import parse_json, problems_of
from kbgate.tasks.schema import Document, Fingerprints

SCHEMA: Final = 1


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


def parse(text: bytes, where: str, suite: str) -> Pointer:
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
