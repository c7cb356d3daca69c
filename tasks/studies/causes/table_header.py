"""A table lost the line that says what its columns are."""

from __future__ import annotations

import re

from tasks.studies.causes import Confirmed, Missing, cause
from tasks.studies.laboratory import Laboratory

_ROW = re.compile(r"^\s*\|.*\|\s*$|^[^|\n]+\|[^|\n]+\|", re.MULTILINE)
_RULE = re.compile(r"^\s*\|?\s*:?-{2,}[-:|\s]*$", re.MULTILINE)


def has_table(text: str) -> bool:
    """Whether at least two lines of a text are rows of a table."""
    return len(_ROW.findall(text)) >= 2


@cause("table_header", order=60, changed=("card",))
def table_header(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card's table was cut from its header."""
    old = lab.as_it_was(missing.gold)
    if old is None or missing.gold not in lab.cards:
        return None
    text = lab.cards[missing.gold]["text"]
    if not (has_table(text) and has_table(old["text"]) and _RULE.search(old["text"]) and not _RULE.search(text)):
        return None
    now = lab.cards[missing.gold]
    change = lab.replaced({**now, "text": old["text"]})
    if not lab.brings_back(missing.case, missing.gold, change):
        return None
    rank = lab.ask(missing.case, change).rank(missing.gold)
    return Confirmed(f"the table of '{missing.gold}' lost its header; with it, it stands at {rank}", (missing.gold,))
