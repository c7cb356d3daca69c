"""BM25 over the same embedded texts, each row stemmed in its own language."""

from __future__ import annotations

import logging
from collections import Counter

import numpy as np

from kbgate.tasks.domain import GoldenSet, Index, KnowledgeBase, Question
from kbgate.tasks.errors import counted, named
from kbgate.tasks.retrieval import ScoreKind, Search, lanes_of, retriever
from kbgate.tasks.retrieval.eligible import eligible_of
from kbgate.tasks.retrieval.lanes import search_lane
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import NOTHING, Hits
from kbgate.tasks.words import VERSION
from kbgate.tasks.words.analyser import analyser_of
from kbgate.tasks.words.languages import is_known


def unknown_languages(suite: Suite, kb: KnowledgeBase, golden: GoldenSet) -> str:
    """A sentence about languages whose words BM25 reads as English; "" where there are none, or it is not asked."""
    if suite.index.analyser or not any(lane.scores is ScoreKind.BM25 for lane in lanes_of(suite.retrieval.method)):
        return ""
    cards = Counter(card.language for card in kb.cards.values() if card.language and not is_known(card.language))
    cases = Counter(case.language for case in golden.cases.values() if case.language and not is_known(case.language))
    if not cards and not cases:
        return ""
    count = f"{counted(cards.total(), 'card')}, {counted(cases.total(), 'case')}"
    languages, method = named(sorted({*cards, *cases})), suite.retrieval.method
    return (
        f"no rules for the words of {languages} ({count}): {method} reads them as English; "
        'see how these score apart, or bring what finds their words: [index] analyser = "module:function"'
    )


@retriever("bm25", scores=ScoreKind.BM25, vectors=False, short_list_is_legal=True, versions={"analyser": VERSION})
def bm25(index: Index, suite: Suite) -> Search:
    """BM25 (Lucene's variant, k1 = 1.2, b = 0.75) over stemmed words; a row without a word of the question is no hit.

    Source: Robertson & Zaragoza 2009; the variant as in Kamphuis et al. 2020.
    """
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    ids, eligible, analyser = index.rows.ids, eligible_of(index.rows), analyser_of(suite)
    corpus = analyser.of_rows(index.rows)
    vocabulary = {term: number for number, term in enumerate(sorted({t for text in corpus for t in text}))}
    model = None
    if vocabulary:
        model = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        model.index(([[vocabulary[t] for t in text] for text in corpus], vocabulary), show_progress=False)

    def ask(question: Question, count: int) -> Hits:
        known = [vocabulary[t] for t in analyser.terms(question.text, question.language) if t in vocabulary]
        if model is None or not known:
            return NOTHING
        scores = model.get_scores_from_ids(known)
        places = np.flatnonzero((scores > 0) & eligible.rows(question.where))
        # Stable over rows sorted by id: equal scores are cut by id.
        best = places[np.argsort(-scores[places], kind="stable")[:count]]
        return Hits(tuple(ids[place] for place in best), scores[best].astype(float))

    return search_lane("bm25", index.rows, suite.retrieval.candidates, ask)
