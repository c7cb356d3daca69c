"""The words of an index, counted so that one question can be asked of many variants of it.

The lane `bm25` analyses an index once and asks it hundreds of questions. A diagnosis asks one question of an index without
this card, or with that one as it was: the counts stay, only their sums change. Same terms, same formula, same scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from kbgate.tasks.records import digest, replacing
from kbgate.tasks.tables import Floats, Mask, Numbers, Rows
from kbgate.tasks.words import VERSION
from kbgate.tasks.words.analyser import Analyser

K1, B = 1.2, 0.75
"""As the lane `bm25` has them."""
_KEPT_ABOVE = 2000
"""Rows from which on the analysis is kept on disk."""


class Lexicon:
    """How often each word stands in each row."""

    def __init__(self, tokens: Numbers, lengths: Numbers, words: Sequence[str]):
        """`tokens`: word numbers of all rows, one row after the other; `lengths`: words per row."""
        self.lengths = lengths
        self._numbers = {word: number for number, word in enumerate(words)}
        order = np.argsort(tokens, kind="stable")
        self._rows = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)[order]
        self._starts = np.searchsorted(tokens[order], np.arange(len(words) + 1))

    def counts(self, word: str) -> Floats:
        """How often a word stands in each row."""
        number = self._numbers.get(word)
        if number is None:
            return np.zeros(len(self.lengths))
        rows = self._rows[self._starts[number] : self._starts[number + 1]]
        return np.bincount(rows, minlength=len(self.lengths)).astype(float)


def analyse(rows: Rows, analyser: Analyser, home: Path | None = None) -> Lexicon:
    """The lexicon of an index's rows; a large one is kept under `home` and read back."""
    path = None
    if home is not None and len(rows) > _KEPT_ABOVE:
        path = home / "terms" / f"{digest([VERSION, analyser.versions(rows), list(rows.ids)], 32)}.npz"
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
                return Lexicon(kept["tokens"], kept["lengths"], str(kept["words"]).split("\n"))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            pass  # not kept yet, or damaged: analysed again
    texts = analyser.of_rows(rows)
    words = sorted({word for text in texts for word in text})
    numbers = {word: number for number, word in enumerate(words)}
    tokens = np.array([numbers[word] for text in texts for word in text], dtype=np.int32)
    lengths = np.array([len(text) for text in texts], dtype=np.int32)
    if path is not None:
        # An open file: to a path of another suffix np.savez would add its own.
        with replacing(path) as temporary, temporary.open("wb") as opened:
            np.savez(opened, tokens=tokens, lengths=lengths, words=np.array("\n".join(words)))
    return Lexicon(tokens, lengths, words)


def bm25(question: Sequence[str], parts: Sequence[tuple[Lexicon, Mask]]) -> list[Floats]:
    """BM25 of a question's terms over the rows of several lexica that still stand (a boolean per row), as one index.

    Lucene's variant, as the lane `bm25`. Source: Robertson & Zaragoza 2009; Kamphuis et al. 2020.
    """
    total = sum(int(standing.sum()) for _, standing in parts)
    words = sum(int(lexicon.lengths[standing].sum()) for lexicon, standing in parts)
    scores = [np.zeros(len(lexicon.lengths)) for lexicon, _ in parts]
    if not total or not words:
        return scores
    for word in question:
        counts = [lexicon.counts(word) for lexicon, _ in parts]
        holding = sum(int((count[standing] > 0).sum()) for count, (_, standing) in zip(counts, parts, strict=True))
        if not holding:
            continue
        weight = np.log(1 + (total - holding + 0.5) / (holding + 0.5))
        for score, count, (lexicon, _) in zip(scores, counts, parts, strict=True):
            score += weight * count / (count + K1 * (1 - B + B * lexicon.lengths * total / words))
    return scores
