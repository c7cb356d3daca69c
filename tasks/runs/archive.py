"""The cards that runs have seen, by content hash, so that a changed card can be put back as it was.

One folder per suite in kbgate's home, of Parquet files that are only ever added: a run adds the cards no file holds yet.
What is missing or cannot be read is as if never seen: a diagnosis then says less, and nothing else depends on it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from kbgate.tasks.records import canonical, replacing
from kbgate.tasks.tables import CARD_COLUMNS, rows_of

_NOT_CONTENT = ("file", "line")


def _folder(home: Path, suite: str) -> Path:
    return home / "cards" / suite


def keep_cards(home: Path, suite: str, cards: pd.DataFrame) -> None:
    """Add the cards that are not kept yet."""
    known = set()
    for path in _folder(home, suite).glob("*.parquet"):
        known |= _hashes(path)
    added = {row["hash"]: row for row in rows_of(cards) if row["hash"] not in known}
    if not added:
        return
    path = _folder(home, suite) / f"{uuid.uuid4().hex}.parquet"
    table = pd.DataFrame([(name, _written(row)) for name, row in sorted(added.items())], columns=["hash", "card"])
    with replacing(path) as temporary:
        table.to_parquet(temporary, index=False)


def recall_cards(home: Path, suite: str, hashes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The cards of these content hashes that are kept, as rows of `CARD_COLUMNS`."""
    wanted, found = set(hashes), {}
    for path in sorted(_folder(home, suite).glob("*.parquet")):
        if not wanted & _hashes(path):
            continue
        table = pd.read_parquet(path)
        for name, text in zip(table["hash"], table["card"], strict=True):
            if name in wanted:
                found[name] = _read(text)
    return found


def _hashes(path: Path) -> set[str]:
    import pyarrow as pa

    try:
        return set(pd.read_parquet(path, columns=["hash"])["hash"])
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return set()


def _written(row: dict[str, Any]) -> str:
    content = {name: row[name] for name in CARD_COLUMNS if name not in _NOT_CONTENT}
    for name in ("valid_from", "valid_until"):
        content[name] = content[name].isoformat() if content[name] else None
    return canonical(content)


def _read(text: str) -> dict[str, Any]:
    import datetime as dt

    row: dict[str, Any] = {**json.loads(text), "file": "", "line": 0}
    for name in ("valid_from", "valid_until"):
        row[name] = dt.date.fromisoformat(row[name]) if row[name] else None
    return row
