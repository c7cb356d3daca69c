"""A table lost the line that says what its columns are."""

from __future__ import annotations

import dataclasses
import re

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.domain import Card

_RULE = re.compile(r"^\s*\|?\s*:?-{2,}[-:|\s]*$", re.MULTILINE)


def table_spans(text: str) -> list[tuple[int, int]]:
    """Where the tables of a text stand: at least two lines in a row with at least two bars each."""
    spans: list[tuple[int, int]] = []
    first, lines, at = 0, 0, 0
    for line in [*text.split("\n"), ""]:
        if line.count("|") >= 2:
            first, lines = (first, lines + 1) if lines else (at, 1)
        else:
            spans += [(first, at - 1)] if lines >= 2 else []
            lines = 0
        at += len(line) + 1
    return spans


def has_table(text: str) -> bool:
    """Whether a text holds a table."""
    return bool(table_spans(text))


def lost_its_header(old: Card, now: Card) -> bool:
    """Whether a card has a table whose header it no longer has."""
    both = has_table(old.text) and has_table(now.text)
    return both and bool(_RULE.search(old.text)) and not _RULE.search(now.text)


@cause("table_header", after="repeated_text", changed=("card",))
def table_header(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card's table was cut from its header."""
    old = lab.as_it_was(missing.gold)
    if old is None or missing.gold not in lab.cards:
        return None
    now = lab.cards[missing.gold]
    if not lost_its_header(old, now):
        return None
    change = lab.replaced(dataclasses.replace(now, text=old.text))
    if not lab.brings_back(missing.case, missing.gold, change):
        return None
    rank = lab.ask(missing.case, change).rank(missing.gold)
    return Confirmed(f"the table of '{missing.gold}' lost its header; with it, it stands at {rank}", (missing.gold,))
