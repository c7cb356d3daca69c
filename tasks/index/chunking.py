"""Cards cut into chunks: spans of the card's text, and the text of each that is embedded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from kbgate.tasks.domain import KnowledgeBase
from kbgate.tasks.registry import Registry, first_line
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Chunks

Span = tuple[int, int]
"""Where a chunk stands in a card's text, end exclusive."""
Split = Callable[[str, int, int], list[Span]]

_BOUNDARIES = (
    re.compile(r"\n[ \t]*\n+"),  # paragraph
    re.compile(r"\n"),  # line
    re.compile(r"(?<=[.!?…。])[\"'”’)\]]*\s+"),  # sentence
    re.compile(r"\s+"),  # word
)


@dataclass(frozen=True, slots=True)
class Chunker:
    """A declared chunking method."""

    name: str
    split: Split
    """`f(text, size, overlap)` returns the spans of the chunks."""
    version: int = 1
    """Part of the index fingerprint: raised whenever the same card would be cut elsewhere."""

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""
        return first_line(self.split)


CHUNKERS: Registry[Chunker] = Registry("chunking method", __name__)


def chunker(name: str, *, version: int = 1) -> Callable[[Split], Split]:
    """Declare a chunking method: `@chunker("whole") def whole(text, size, overlap)`."""

    def declare(split: Split) -> Split:
        CHUNKERS.add(name, Chunker(name, split, version))
        return split

    return declare


@chunker("whole")
def whole(text: str, size: int, overlap: int) -> list[Span]:
    """The card as one chunk, whatever its length."""
    return [(0, len(text))]


@chunker("recursive")
def recursive(text: str, size: int, overlap: int) -> list[Span]:
    """Chunks of at most `size` characters, cut at the largest boundary that fits, each beginning with the words before it.

    Boundaries in order: paragraph, line, sentence, word, and a hard cut inside words longer than `size`. The overlap is at
    most `overlap` characters and begins at a word. Every character that is no white space is in at least one chunk.
    """
    spans: list[Span] = []
    start = end = 0
    for piece_start, piece_end in _pieces(text, 0, len(text), size, 0):
        if end > start and _trimmed(text, start, piece_end)[1] - start > size:
            spans.append((start, end))
            earliest = max(end - overlap, _trimmed(text, piece_start, piece_end)[1] - size)
            start = _word_start(text, earliest, piece_start) if overlap else piece_start
        elif end == start:
            start = piece_start
        end = piece_end
    if end > start:
        spans.append((start, end))
    trimmed = [_trimmed(text, *span) for span in spans]
    return [span for span in trimmed if span[0] < span[1]]


def _pieces(text: str, start: int, end: int, size: int, level: int) -> list[Span]:
    """Contiguous pieces of at most `size` characters (white space at their ends apart), split no finer than needed."""
    first, last = _trimmed(text, start, end)
    if last - first <= size:
        return [(start, end)] if first < last else []
    if level == len(_BOUNDARIES):
        return [(cut, min(cut + size, last)) for cut in range(first, last, size)]
    cuts = [start, *(m.end() for m in _BOUNDARIES[level].finditer(text, start, end)), end]
    return [p for a, b in pairwise(cuts) if a < b for p in _pieces(text, a, b, size, level + 1)]


def _word_start(text: str, earliest: int, latest: int) -> int:
    """The first place from `earliest` on at which a word begins, or `latest`."""
    for place in range(max(earliest, 0), latest):
        if not text[place].isspace() and (place == 0 or text[place - 1].isspace()):
            return place
    return latest


def _trimmed(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def chunk(suite: Suite, kb: KnowledgeBase) -> Chunks:
    """Cut every card; title and description stand in the text of the first chunk alone."""
    settings = suite.chunking
    split = CHUNKERS[settings.method].split
    ids, cards, starts, ends, texts = [], [], [], [], []
    for card in kb.cards.values():
        # A card that is only a title still has one chunk: it can be found by its name.
        for number, (start, end) in enumerate(split(card.text, settings.size, settings.overlap) or [(0, 0)]):
            title, description = (card.title, card.description) if number == 0 else ("", "")
            ids.append(f"{card.id}::{number:02d}")
            cards.append(card.id)
            starts.append(start)
            ends.append(end)
            texts.append(_compose(suite.embedding.text, title, description, card.text[start:end]))
    return Chunks(tuple(ids), tuple(cards), tuple(starts), tuple(ends), tuple(texts))


def _compose(template: str, title: str, description: str, chunk_text: str) -> str:
    """The template filled in, line by line; a line whose every part is empty is dropped."""
    values = {"title": title, "description": description, "chunk": chunk_text}
    lines = []
    for line in template.split("\n"):
        names = [name for name in values if "{" + name + "}" in line]
        if not names or any(values[name].strip() for name in names):
            lines.append(line.format(**values))
    return "\n".join(lines)
