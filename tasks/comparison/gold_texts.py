"""Gold that is still there, and no longer says what it said: its text is gone, cut short, or that of many other cards too.

Such a card goes on ranking by its title, so no figure shows it. What it had is known by the baseline's manifest (length and
hash of each text); without a baseline only a text that is not there can be told. One text replaced by another of the same
length is an edit like any other: only evidence, an excerpt that must stand in the card, holds it.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kbgate.tasks.domain import Baseline, Card, Cards, Case, Cases, KnowledgeBase, Vanished
from kbgate.tasks.records import digest
from kbgate.tasks.schema import BaselineCard

LEFT = 0.1
"""Share of its text below which a card has as good as lost it."""
SHORTENED = 0.5
"""Share of its text below which a card is told to be shortened: a paragraph taken out or a cleaned-up page stays above it."""
ALIKE = 5
"""Cards of different texts that have one and the same text now, from which on it is no editor's merging of a few."""
SHRUNKEN = 0.9
"""Share of the baseline's text, or of its cards that had any, below which a knowledge base has shrunk."""
_HASH = 16


class TextLoss(StrEnum):
    """What became of a gold card's text."""

    EMPTY = "empty"
    NEARLY = "nearly"
    """Less than a tenth is left."""
    REPLACED = "replaced"
    """It reads as many other cards do that had texts of their own."""
    SHORTENED = "shortened"
    MERGED = "merged"
    """It reads as a few other cards do that had texts of their own."""
    NEVER = "never"
    """It has no text and never had any; another card answers the same."""


@dataclass(frozen=True, slots=True)
class LostText:
    """A gold card that no longer says what it said."""

    card: str
    loss: TextLoss
    now: int
    was: int | None
    """Characters; None where no baseline knows the card."""
    cases: tuple[str, ...]


def lost_texts(golden: Cases, kb: KnowledgeBase, baseline: Baseline | None, vanished: Collection[Vanished]) -> list[LostText]:
    """Every gold card that lost its text, by id. A case whose excerpt still stands in its card has lost nothing, and one whose
    gold or excerpt vanished is told of that.
    """
    gone = {(lost.case, lost.card) for lost in vanished}
    rows = baseline.cards if baseline else {}
    cases: dict[tuple[str, TextLoss], list[str]] = defaultdict(list)
    alike = _alike(kb.cards, rows)
    for case in golden.values():
        for name in sorted(case.grades):
            if name in kb.cards and (case.id, name) not in gone and not _quoted(case, name):
                loss = _loss(kb.cards[name], rows.get(name), alike.get(name, 0))
                if loss == TextLoss.EMPTY and not _had_text(rows.get(name)) and _has_another(case, name, kb.cards):
                    loss = TextLoss.NEVER
                if loss is not None:
                    cases[name, loss].append(case.id)
    return [
        LostText(name, loss, length_of(kb.cards[name].text), rows[name].length if name in rows else None, tuple(of_card))
        for (name, loss), of_card in sorted(cases.items())
    ]


def shrinkage(kb: KnowledgeBase, baseline: Baseline | None) -> str:
    """By how much a knowledge base has less text than its baseline, as a clause; "" where it has not shrunk."""
    rows = baseline.cards.values() if baseline else ()
    lengths = [len(card.text) for card in kb.cards.values()]
    for now, was, what in (
        (sum(map(bool, lengths)), sum(bool(row.length) for row in rows), "cards with text"),
        (sum(lengths), sum(row.length for row in rows), "characters"),
    ):
        if now < SHRUNKEN * was:
            return f"the knowledge base has {now} {what} and had {was} in the baseline"
    return ""


def length_of(text: str) -> int:
    """The characters of a text that can be seen, each run of blanks as one."""
    return sum(map(str.isprintable, " ".join(text.split())))


def has_words(text: str) -> bool:
    """Whether a text has a letter, a number or a symbol: rules, dots and invisible characters say nothing."""
    return any(unicodedata.category(character)[0] in "LNS" for character in text)


def _loss(card: Card, row: BaselineCard | None, alike: int) -> TextLoss | None:
    if not has_words(card.text):
        return TextLoss.EMPTY if _had_text(row) or not has_words(card.description) else None
    if row is None or row.hash == card.hash or row.text == digest(card.text, _HASH):
        return None
    now = length_of(card.text)
    if now < LEFT * row.length:
        return TextLoss.NEARLY
    if alike >= ALIKE:
        return TextLoss.REPLACED
    if now < SHORTENED * row.length:
        return TextLoss.SHORTENED
    return TextLoss.MERGED if alike > 1 else None


def _had_text(row: BaselineCard | None) -> bool:
    return row is not None and row.length > 0


def _quoted(case: Case, card: str) -> bool:
    """Whether a case says word for word what answers it: that it stands in the card is looked at apart."""
    return any(span.card == card and span.text is not None for span in case.evidence)


def _has_another(case: Case, card: str, cards: Cards) -> bool:
    """Whether everything that a card answers of a case is answered by another card, which has text."""
    return all(
        any(other in cards and has_words(cards[other].text) for other in group) for group in case.groups if card in group
    )


def _alike(cards: Cards, rows: Mapping[str, BaselineCard]) -> dict[str, int]:
    """By card that changed: how many different texts became the text that it has now, but for the title."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, card in _changed(cards, rows):
        groups[_without_title(card)].append(name)
    return {name: len({rows[other].text for other in group}) for group in groups.values() for name in group}


def _changed(cards: Cards, rows: Mapping[str, BaselineCard]) -> Iterator[tuple[str, Card]]:
    for name, card in cards.items():
        row = rows.get(name)
        if row is not None and row.hash != card.hash and row.text != digest(card.text, _HASH):
            yield name, card


def _without_title(card: Card) -> str:
    """A text's letters and digits without those of its title, which pages of one template differ in."""
    text, title = ("".join(filter(str.isalnum, words.casefold())) for words in (card.text, card.title))
    return text.replace(title, "") if title else text
