"""The cards that runs have seen, by content hash, so that a changed card can be put back as it was.

One folder per suite in kbgate's home, of Parquet files that are only ever added: a run adds the cards no file holds yet.
What is missing or cannot be read is as if never seen: a diagnosis then says less, and nothing else depends on it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from kbgate.tasks.domain import Card, Cards
from kbgate.tasks.records import canonical
from kbgate.tasks.runs.columns import write_parquet

_CARD = TypeAdapter(Card)
_NOT_CONTENT = {"file", "line"}


def _folder(home: Path, suite: str) -> Path:
    return home / "cards" / suite


def keep_cards(home: Path, suite: str, cards: Cards) -> None:
    """Add the cards that are not kept yet."""
    known = set()
    for path in _folder(home, suite).glob("*.parquet"):
        known |= _hashes(path)
    added = {card.hash: _written(card) for card in cards.values() if card.hash not in known}
    if not added:
        return
    path = _folder(home, suite) / f"{uuid.uuid4().hex}.parquet"
    hashes = sorted(added)
    write_parquet(pa.table({"hash": pa.array(hashes), "card": pa.array([added[name] for name in hashes])}), path)


def recall_cards(home: Path, suites: tuple[str, ...], hashes: Iterable[str]) -> dict[str, Card]:
    """The cards of these content hashes that are kept, by hash; where they were read is not.

    `suites`: the names a suite's cards are kept under.
    """
    wanted, recalled = set(hashes), {}
    for path in (path for suite in suites for path in sorted(_folder(home, suite).glob("*.parquet"))):
        if not wanted & _hashes(path):
            continue
        table = pq.read_table(path)
        for name, text in zip(table["hash"].to_pylist(), table["card"].to_pylist(), strict=True):
            if name in wanted:
                # An end that was open was null once.
                written = {part: value for part, value in json.loads(text).items() if value is not None}
                recalled[name] = _CARD.validate_json(canonical(written))
    return recalled


def _hashes(path: Path) -> set[str]:
    try:
        return set(pq.read_table(path, columns=["hash"])["hash"].to_pylist())
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return set()


def _written(card: Card) -> str:
    return canonical(_CARD.dump_python(card, mode="json", exclude=_NOT_CONTENT))
