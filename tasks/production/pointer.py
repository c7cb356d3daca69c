"""The pointer: what is served and what was served before, as the one document that readers follow.

Every build is a collection of its own and is never changed after it was examined; what moves is one pointer, in one step.
Pointers are numbered: a move is bound to the pointer it replaces, so whoever was overtaken moves nothing.
"""

from __future__ import annotations

import datetime as dt
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Literal, Protocol
from uuid import uuid4

from pydantic import Field, JsonValue, ValidationError

from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.errors import Problem, Refused
from kbgate.tasks.records import parse_json, problems_of
from kbgate.tasks.schema import Document, Fingerprints

SCHEMA: Final = 2
_READ = (1, SCHEMA)
_BUILD = re.compile(r"(?P<suite>[a-z0-9][a-z0-9-]*)-[0-9a-f]{16}-[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")

Action = Literal["promoted", "rolled back", "fenced", "withdrawn"]
"""Fenced: the same target again, so that a promotion which lost its lease can no longer move the pointer."""


class Examined(Document):
    """The exam that let a build in."""

    verdict: VerdictName
    run: str
    fingerprints: Fingerprints


class Contents(Document):
    """What a build holds."""

    rows: int
    digest: str
    """Of the ids, documents and metadata of all rows."""


class Target(Document):
    """One build that is served, or kept to return to."""

    build: str
    """The collection's name."""
    place: str
    """In a folder versions/<build>, and nothing else; on a server its URL."""
    promoted: str
    """When the pointer moved to it first, ISO, UTC; empty for one that was found without a pointer."""
    verdict: Examined | None
    """None: of unknown state, and examined before it is served."""
    contents: Contents | None = None
    """What it held when it was let in; None where an older kbgate did not write it down."""

    @property
    def known(self) -> bool:
        """Whether its exam and its contents were written down."""
        return self.verdict is not None and self.contents is not None


class Move(Document):
    """How a pointer came to stand: what its line in the audit trail says."""

    token: str
    """Its own: no two moves are alike."""
    after: str
    """The token of the pointer it replaced; empty where that had none."""
    action: Action
    time: str
    origin: str
    """The build that was served before; empty for none."""
    lag_s: float | None = None


class Pointer(Document):
    """What is served, and what was served before, newest first."""

    schema_: Literal[1, 2] = Field(default=SCHEMA, alias="schema")
    number: int = 0
    """Of this place's moves; 0 before the first, and for a pointer of the first schema."""
    move: Move | None = None
    target: Target | None
    previous: tuple[Target, ...]

    @property
    def token(self) -> str:
        """What the next move is bound to."""
        return self.move.token if self.move else ""

    @property
    def served(self) -> str:
        """The build that is served; empty for none."""
        return self.target.build if self.target else ""

    @property
    def builds(self) -> frozenset[str]:
        """Every build it names."""
        return frozenset(target.build for target in (self.target, *self.previous) if target)

    def then(
        self, action: Action, target: Target | None, previous: tuple[Target, ...], now: dt.datetime, lag_s: float | None = None
    ) -> Pointer:
        """The pointer that replaces this one."""
        time = now.isoformat(timespec="seconds")
        move = Move(token=uuid4().hex, after=self.token, action=action, time=time, origin=self.served, lag_s=lag_s)
        return Pointer(number=self.number + 1, move=move, target=target, previous=previous)


NOTHING_SERVED = Pointer(target=None, previous=())


def is_build(name: str, suite: str) -> bool:
    """Whether a name is that of a build of this suite, and of no other whose name begins alike; of any suite if ""."""
    match = _BUILD.fullmatch(name)
    return match is not None and suite in ("", match["suite"])


class Production(Protocol):
    """A Chroma that serves one suite."""

    home: Path
    """Where its audit trail is kept, on this machine."""
    suite: str

    def held(self) -> AbstractContextManager[None]:
        """Keep other promotions out while the block lasts; waits ten minutes for one that goes on, then `Refused`."""

    def read(self) -> Pointer:
        """The pointer as it stands; an empty one where nothing was ever promoted."""

    def move(self, pointer: Pointer) -> None:
        """Replace the pointer in one step, or raise `Overtaken` where it is no longer the one this one comes after."""

    def fence(self, now: dt.datetime) -> Pointer | None:
        """Let no promotion that lost its hold move the pointer any more; the pointer, where that had to move."""

    def settle(self) -> None:
        """Bring in line what stands beside the pointer and follows from it."""

    def claim(self, build: str) -> None:
        """Say that the holder is about to make this build."""

    def place(self, build: str) -> str:
        """Where a build's collection is opened: a folder or a URL."""

    def builds(self) -> list[str]:
        """Every build that is there, served or not."""

    def leftovers(self) -> list[str]:
        """The builds that the pointer does not name and no later promotion is at work on."""

    def discard(self, build: str) -> None:
        """Remove a build, unless the pointer names it."""


def parse(text: bytes, where: str, suite: str, advice: str, take_over: bool = False) -> Pointer:
    """A pointer as it was written; `suite`: the one it must be of, any if ""; `advice`: what to do where it is none.

    `take_over`: builds that are not the suite's are not in it; nothing of theirs is removed.
    """
    try:
        content = parse_json(text.decode("utf-8"))
        pointer = Pointer.of(_of_known_schema(content))
        if {pointer.schema_ == SCHEMA} != {pointer.move is not None, pointer.number > 0}:
            raise ValueError("its number and its move do not fit its schema")
    except ValueError as error:
        detail = str(error)
        if isinstance(error, ValidationError):
            detail = next(problems_of(error, where, 0, Pointer)).sentence
        raise Refused(str(Problem(where, 0, f"is not a pointer kbgate wrote ({detail}); {advice}"))) from None
    strange = sorted(build for build in pointer.builds if not is_build(build, suite))
    if strange and take_over and suite:
        own = tuple(target for target in pointer.previous if is_build(target.build, suite))
        target = pointer.target if pointer.target and is_build(pointer.target.build, suite) else None
        return pointer.model_copy(update={"target": target, "previous": own})
    if strange:
        sentence = (
            f"serves '{strange[0]}', which is not a build of '{suite}'; give each suite a place of its own ([production]), or, "
            "where this one is to serve from there from now on: kbgate promote --take-over"
        )
        if not suite:
            sentence = f"serves '{strange[0]}', which is not a name kbgate gives; {advice}"
        raise Refused(str(Problem(where, 0, sentence)))
    return pointer


def _of_known_schema(content: JsonValue) -> JsonValue:
    """The content, unless a newer kbgate wrote it."""
    schema = content.get("schema") if isinstance(content, dict) else None
    if isinstance(schema, int) and schema > SCHEMA:
        raise ValueError(f"its schema is {schema}, this kbgate reads {' and '.join(map(str, _READ))}: upgrade kbgate")
    return content
