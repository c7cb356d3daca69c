"""The audit trail: a line for each move of the pointer, and for each candidate that was not let in."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path

from kbgate.tasks.production.lock import LOCK_WAIT_S, kernel_lock
from kbgate.tasks.production.pointer import Pointer, Production
from kbgate.tasks.records import append_line

_TRAIL = "audit.jsonl"


def note(production: Production, now: dt.datetime, action: str, entry: Mapping[str, str | float | None]) -> None:
    """A line for what moved nothing."""
    append_line(production.home / _TRAIL, {"time": now.isoformat(timespec="seconds"), "action": action, **entry})


def record(production: Production, pointer: Pointer) -> None:
    """The line of the move that made a pointer, once: also where whoever moved it was killed before it could write."""
    move = pointer.move
    if move is None:
        return
    trail = production.home / _TRAIL
    with kernel_lock(production.home / ".audit.lock", LOCK_WAIT_S, "somebody holds"):
        if move.token in _tokens(trail):
            return
        examined = pointer.target.verdict if pointer.target else None
        entry = {
            "time": move.time,
            "action": move.action,
            "suite": production.suite,
            "build": pointer.served,
            "from": move.origin,
            "verdict": examined.verdict if examined else None,
            "number": pointer.number,
            "move": move.token,
            "lag_s": move.lag_s,
        }
        append_line(trail, entry)


def _tokens(trail: Path) -> set[str]:
    """The moves that have their line; a torn line is none."""
    tokens = set()
    for line in trail.read_text(encoding="utf-8", errors="replace").split("\n") if trail.exists() else ():
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict):
            tokens.add(str(content.get("move", "")))
    return tokens
