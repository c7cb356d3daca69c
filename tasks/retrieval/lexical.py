"""BM25 over the same embedded texts, each row stemmed in its own language."""

from __future__ import annotations

import logging
import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from kbgate.tasks.domain import Index, Question
from kbgate.tasks.retrieval import ScoreKind, Search, retriever
from kbgate.tasks.retrieval.eligible import eligible_of
from kbgate.tasks.retrieval.lanes import search_lane
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import NOTHING, Hits

if TYPE_CHECKING:
    from Stemmer import Stemmer

VERSION = 1
"""Part of the index fingerprint: raised whenever the same text would give other terms."""

_WORD = re.compile(r"\w+")
_ENGLISH = ("english", "STOPWORDS_EN_PLUS")
_LANGUAGES = {
    "da": ("danish", "STOPWORDS_DANISH"),
    "de": ("german", "STOPWORDS_GERMAN"),
    "en": _ENGLISH,
    "es": ("spanish", "STOPWORDS_SPANISH"),
    "fr": ("french", "STOPWORDS_FRENCH"),
    "it": ("italian", "STOPWORDS_ITALIAN"),
    "nl": ("dutch", "STOPWORDS_DUTCH"),
    "no": ("norwegian", "STOPWORDS_NORWEGIAN"),
    "pt": ("portuguese", "STOPWORDS_PORTUGUESE"),
    "ru": ("russian", "STOPWORDS_RUSSIAN"),
    "sv": ("swedish", "STOPWORDS_SWEDISH"),
    "tr": ("turkish", "STOPWORDS_TURKISH"),
}
"""Snowball's name of a language and its list of stop words; one that is not here, or not said, is analysed as English."""


@cache
def _analyser(language: str) -> tuple[Stemmer, frozenset[str]]:
    import bm25s.stopwords
    from Stemmer import Stemmer

    name, stop_words = _LANGUAGES.get(language.partition("-")[0].lower(), _ENGLISH)
    return Stemmer(name), frozenset(getattr(bm25s.stopwords, stop_words))


def terms(text: str, language: str) -> list[str]:
    """The stemmed words of a text that carry meaning, in order; numbers and one-letter words stay."""
    stemmer, stop_words = _analyser(language)
    words = _WORD.findall(unicodedata.normalize("NFKC", text).lower())
    return list(stemmer.stemWords([word for word in words if word not in stop_words]))


@retriever("bm25", scores=ScoreKind.BM25, vectors=False, short_list_is_legal=True, versions={"analyser": VERSION})
def bm25(index: Index, suite: Suite) -> Search:
    """BM25 (Lucene's variant, k1 = 1.2, b = 0.75) over stemmed words; a row without a word of the question is no hit.

    Source: Robertson & Zaragoza 2009; the variant as in Kamphuis et al. 2020.
    """
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    ids, eligible = index.rows.ids, eligible_of(index.rows)
    corpus = [terms(text, language) for text, language in zip(index.rows.texts, index.rows.languages, strict=True)]
    vocabulary = {term: number for number, term in enumerate(sorted({t for text in corpus for t in text}))}
    model = None
    if vocabulary:
        model = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        model.index(([[vocabulary[t] for t in text] for text in corpus], vocabulary), show_progress=False)

    def ask(question: Question, count: int) -> Hits:
        known = [vocabulary[t] for t in terms(question.text, question.language) if t in vocabulary]
        if model is None or not known:
            return NOTHING
        scores = model.get_scores_from_ids(known)
        places = np.flatnonzero((scores > 0) & eligible.rows(question.where))
        # Stable over rows sorted by id: equal scores are cut by id.
        best = places[np.argsort(-scores[places], kind="stable")[:count]]
        return Hits(tuple(ids[place] for place in best), scores[best].astype(float))

    return search_lane("bm25", index.rows, suite.retrieval.candidates, ask)
