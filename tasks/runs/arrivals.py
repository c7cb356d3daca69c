"""What came into the knowledge base since it was last green, by its manifests."""

from __future__ import annotations

import ast
import csv
from collections.abc import Container, Mapping
from pathlib import Path

from kbgate.tasks.domain import Arrivals, Inputs, Mode
from kbgate.tasks.identity import identity_of, run_folder
from kbgate.tasks.records import nfc
from kbgate.tasks.runs.columns import read_cards
from kbgate.tasks.runs.history import read_history
from kbgate.tasks.runs.runfiles import MANIFEST


def arrivals(inputs: Inputs, home: Path, batch: str = "") -> Arrivals | None:
    """Cards that are new, changed or gone since the last green full run, or the baseline; None where there is neither."""
    for line in reversed(read_history(home, identity_of(inputs.suite).keys)):
        manifest = run_folder(home, inputs.suite, line.run) / MANIFEST
        if line.verdict.green and line.mode == Mode.FULL and manifest.exists():
            return _between(f"run {line.run}", read_cards(manifest), _hashes(inputs), batch)
    return since_baseline(inputs, batch)


def since_baseline(inputs: Inputs, batch: str = "") -> Arrivals | None:
    """Cards that are new, changed or gone since the baseline; None where there is none."""
    if inputs.baseline is None:
        return None
    then = {name: card.hash for name, card in inputs.baseline.cards.items()}
    return _between("the baseline", then, _hashes(inputs), batch)


def _hashes(inputs: Inputs) -> dict[str, str]:
    return {name: card.hash for name, card in inputs.kb.cards.items()}


def _between(since: str, then: Mapping[str, str], now: Mapping[str, str], batch: str) -> Arrivals:
    return Arrivals(
        since,
        batch,
        new=tuple(sorted(set(now) - set(then))),
        changed=tuple(sorted(card for card in set(now) & set(then) if now[card] != then[card])),
        removed=tuple(sorted(set(then) - set(now))),
    )


def announced_ids(given: object, known: Container[str] = ()) -> tuple[str, ...]:
    """The card ids that an event announced: a list, a list written as text, or text: an id a line, or several apart by commas.

    A line that is an id of `known` is that id, whatever commas it has; in any other, an id with a comma stands in quotes.
    """
    if isinstance(given, str) and given.strip().startswith("["):
        try:
            given = ast.literal_eval(given.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            given = str(given).strip(" []")
    if given is None or given in ("None", "null"):
        return ()
    if isinstance(given, list | tuple):
        parts = [str(part) for part in given]
    else:
        parts = [part for line in str(given).splitlines() for part in _apart(line, known)]
    # As the ids of cards are read.
    return tuple(dict.fromkeys(nfc(name) for name in (part.strip() for part in parts) if name))


def _apart(line: str, known: Container[str]) -> list[str]:
    if nfc(line.strip()) in known:
        return [line]
    try:
        return next(csv.reader([line], skipinitialspace=True, strict=True), [])
    except csv.Error:
        return line.split(",")
