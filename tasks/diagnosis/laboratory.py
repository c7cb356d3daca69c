"""One knowledge base, and the same with one thing changed: what its baseline was, and what each question would find."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from kbgate.tasks.baseline.recovery import Recovery, recover_cards
from kbgate.tasks.clock import LATEST
from kbgate.tasks.diagnosis.variants import AS_IS, Change, Pieces, Ranking, Variants
from kbgate.tasks.domain import Card, Cases, Inputs, KnowledgeBase, Material, Question
from kbgate.tasks.identity import identity_of
from kbgate.tasks.index.chunking import chunk
from kbgate.tasks.index.embedding import embed_queries, embed_rows
from kbgate.tasks.index.fingerprint import changed_pipeline, pipeline_of
from kbgate.tasks.index.models import identify_model
from kbgate.tasks.index.store import build_rows
from kbgate.tasks.predicates import STARTS, both, in_store_values, matches, store_fields, valid_at
from kbgate.tasks.retrieval import needs_vectors
from kbgate.tasks.runs.archive import recall_cards
from kbgate.tasks.settings import Chunking, Embedding, IndexSettings, Retrieval, Section
from kbgate.tasks.tables import Vectors

VALIDITY, FILTER, ACCESS = "validity", "filter", "access"
"""The three conditions a question puts on cards, any of which may be lifted."""
_ANY_TIME = {STARTS: {"$lte": LATEST}}
"""What every card satisfies."""
_SECTIONS: dict[str, type[Section]] = {
    "chunking": Chunking,
    "embedding": Embedding,
    "index": IndexSettings,
    "retrieval": Retrieval,
}
"""Parts of the settings that can be put back as the baseline had them."""


class Laboratory:
    """A suite's index in memory, and its baseline's cards where they are still known."""

    def __init__(self, inputs: Inputs, material: Material, cases: Cases, vectors: Vectors, as_of: dt.datetime, home: Path):
        """`vectors`: one per case, in their order; `home`: kbgate's, with vectors, cards and terms."""
        self.inputs, self.material, self.cases, self.as_of, self.home = inputs, material, cases, as_of, home
        self.suite, self.cards = inputs.suite, inputs.kb.cards
        self._vectors = dict(zip(cases, vectors, strict=True))
        self._variants = Variants(inputs.suite, material.rows, material.vectors, home)
        self._rankings: dict[tuple[str, Change, frozenset[str]], Ranking] = {}
        self._changes: dict[str, Change] = {}
        self._others: dict[tuple[str, ...], Laboratory | None] = {}

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes of the suite's method."""
        return self._variants.lanes

    # ------------------------------------------------------------ what changed since the baseline

    @cached_property
    def baseline_hashes(self) -> dict[str, str]:
        """The baseline's cards: id to content hash; empty without a baseline."""
        return {card: row.hash for card, row in self.inputs.baseline.cards.items()} if self.inputs.baseline else {}

    @cached_property
    def newcomers(self) -> frozenset[str]:
        """Cards that are new or changed since the baseline; none without one."""
        if not self.baseline_hashes:
            return frozenset()
        return frozenset(name for name, card in self.cards.items() if self.baseline_hashes.get(name) != card.hash)

    @cached_property
    def removed(self) -> frozenset[str]:
        """Cards of the baseline that are no longer in the knowledge base."""
        return frozenset(self.baseline_hashes) - frozenset(self.cards)

    def is_as_it_was(self, card: str) -> bool:
        """Whether the baseline knew a card exactly as it is now."""
        return card in self.baseline_hashes and card not in self.newcomers

    def is_new(self, card: str) -> bool:
        """Whether a card came since the baseline."""
        return card in self.newcomers and card not in self.baseline_hashes

    def edit_matters(self, case: str, card: str, of_evidence: bool = False) -> bool:
        """Whether a card was edited and, where it is known as it was, is back once that is undone.

        `of_evidence`: what is missing is not its rank, so that it was edited suffices.
        """
        old = self.as_it_was(card)
        if card not in self.newcomers or old is None or of_evidence:
            return card in self.newcomers
        return self.brings_back(case, card, self.once(f"as it was: {card}", lambda: self.replaced(old)))

    def edited(self, case: str) -> bool:
        """Whether a case is not what it was in the baseline."""
        row = self.inputs.baseline.cases.get(case) if self.inputs.baseline else None
        return row is None or row.hash != self.cases[case].hash

    @cached_property
    def _old(self) -> dict[str, Card]:
        """By content hash, the cards that are no longer as the baseline knew them, where that is still kept."""
        lost = {value for card, value in self.baseline_hashes.items() if card in self.newcomers or card not in self.cards}
        kept = dict(recall_cards(self.home, identity_of(self.suite).archives, lost))
        if lost - set(kept):
            # By content hash: whatever else that commit holds is not what the baseline was made of.
            kept |= {card.hash: card for card in self._recovery.cards.values() if card.hash in lost}
        return kept

    @cached_property
    def _recovery(self) -> Recovery:
        return recover_cards(self.suite)

    @property
    def not_kept(self) -> str:
        """Why what a card was is not known, as half a sentence."""
        return f"is not kept here, and not in git: {self._recovery.trouble}"

    def as_it_was(self, card: str) -> Card | None:
        """A changed or removed card as the baseline knew it; None where that is not kept, or nothing changed."""
        old = self._old.get(self.baseline_hashes.get(card, ""))
        return dataclasses.replace(old, id=card) if old else None

    @cached_property
    def changed_settings(self) -> dict[str, tuple[JsonValue, JsonValue]]:
        """Settings that make rankings and differ from the baseline's, as `section.name`: (then, now)."""
        if self.inputs.baseline is None:
            return {}
        provenance, model = self.inputs.baseline.summary.provenance, self.material.model
        changed = changed_pipeline(provenance.pipeline, pipeline_of(self.suite))
        weights, name = provenance.model.weights, "embedding.model"
        if weights and model is not None and weights != model.weights and name not in changed:
            changed[name] = (f"weights {weights[:12]}", f"weights {model.weights[:12]}")
        return changed

    def under_the_baselines(self, *sections: str) -> Laboratory | None:
        """This knowledge base under the baseline's settings of these sections; None where they are not known.

        Raises `InputError` where the baseline's model is not to be had.
        """
        if sections not in self._others:
            self._others[sections] = self._under(sections)
        return self._others[sections]

    def _under(self, sections: tuple[str, ...]) -> Laboratory | None:
        then = self.inputs.baseline.summary.provenance.pipeline if self.inputs.baseline else {}
        if not then:
            return None
        update: dict[str, Section] = {name: _SECTIONS[name].model_validate(then[name]) for name in sections}
        if "embedding" in update:
            update["embedding"] = update["embedding"].model_copy(update={"batch": self.suite.embedding.batch})
        suite = self.suite.model_copy(update=update)
        rows = build_rows(suite, self.inputs.kb, chunk(suite, self.inputs.kb))
        model = identify_model(suite) if needs_vectors(suite) else None
        vectors = embed_rows(suite, model, rows, self.cache)
        material = dataclasses.replace(self.material, rows=rows, vectors=vectors, model=model)
        asked = embed_queries(suite, model, self.cases, self.cache)
        return Laboratory(dataclasses.replace(self.inputs, suite=suite), material, self.cases, asked, self.as_of, self.home)

    def once(self, name: str, make: Callable[[], Change]) -> Change:
        """A change that a rule makes for all its golds, made the first time."""
        if name not in self._changes:
            self._changes[name] = make()
        return self._changes[name]

    @property
    def cache(self) -> Path:
        """The vector cache."""
        return self.home / "vectors"

    # ------------------------------------------------------------ one thing changed

    def pieces(self, cards: Iterable[Card], *, whole: bool = False, chunking: Chunking | None = None) -> Pieces:
        """What stands in for cards that are given anew; `whole`: each as one; `chunking`: otherwise than the suite cuts."""
        suite = self.suite.model_copy(update={"chunking": chunking or self.suite.chunking})
        if whole:
            suite = suite.model_copy(update={"chunking": suite.chunking.model_copy(update={"method": "whole"})})
        kb = KnowledgeBase({card.id: card for card in cards})
        rows = build_rows(suite, kb, chunk(suite, kb))
        return Pieces(rows, embed_rows(suite, self.material.model, rows, self.cache))

    def replaced(self, *cards: Card, whole: bool = False, about: str = "") -> Change:
        """The cards of these ids as they are given here, or put back where they are gone."""
        return Change(frozenset(card.id for card in cards), self.pieces(cards, whole=whole), about)

    def added(self, *cards: Card, whole: bool = False, chunking: Chunking | None = None) -> Change:
        """More rows of cards beside those they have."""
        return Change(frozenset(), self.pieces(cards, whole=whole, chunking=chunking))

    def undone(self, cards: Sequence[str]) -> Change:
        """New cards gone, changed and removed ones as they were; a changed one that is not known any more is gone too."""
        old = [row for card in cards if (row := self.as_it_was(card)) is not None]
        return Change(frozenset(cards), self.pieces(old) if old else None)

    def texts_of(self, card: str) -> list[str]:
        """The texts of a card's rows, as they are embedded."""
        return [self.material.rows.texts[place] for place in self.material.rows.places(card)]

    def chunk_count(self, card: str) -> int:
        """How many chunks a card is cut into."""
        rows = self.material.rows
        return sum(chunk.rpartition("::")[0] == card for place in rows.places(card) for chunk in rows.chunks[place])

    # ------------------------------------------------------------ asking

    def ask(self, case: str, change: Change = AS_IS, lift: frozenset[str] = frozenset()) -> Ranking:
        """What a case's question would find after a change, and with some of its conditions lifted."""
        key = (case, change, lift)
        if key not in self._rankings:
            self._rankings[key] = self._variants.search(self._question(case, lift), change)
        return self._rankings[key]

    def ask_instead(self, case: str, text: str) -> Ranking:
        """What another question in the place of a case's own would find."""
        instead = {case: dataclasses.replace(self.cases[case], query=text)}
        (vector,) = embed_queries(self.suite, self.material.model, instead, self.cache)
        return self._variants.search(dataclasses.replace(self._question(case, frozenset()), text=text, vector=vector), AS_IS)

    def brings_back(self, case: str, card: str, change: Change = AS_IS, lift: frozenset[str] = frozenset()) -> bool:
        """Whether a card that is not in the top k would be, after a change."""
        rank = self.ask(case, change, lift).rank(card)
        return rank is not None and rank <= self.suite.top_k

    def similarity(self, one: str, other: str) -> float:
        """Cosine similarity of the nearest rows of two cards."""
        return self._variants.similarity(one, other)

    def hides(self, case: str, card: str) -> frozenset[str]:
        """The conditions of a case (validity, filter, access) that a card does not satisfy."""
        asked, fields = self.cases[case], store_fields(self.cards[card], self.suite.kb.filterable)
        conditions = {VALIDITY: valid_at(self.as_of)}
        for name, predicate in ((FILTER, asked.filter), (ACCESS, asked.entitled)):
            if predicate is not None:
                conditions[name] = in_store_values(predicate)
        return frozenset(name for name, predicate in conditions.items() if not matches(predicate, fields))

    def _question(self, case: str, lift: frozenset[str]) -> Question:
        asked = self.cases[case]
        kept = {FILTER: asked.filter, ACCESS: asked.entitled}
        conditions = [
            in_store_values(predicate) for name, predicate in kept.items() if predicate is not None and name not in lift
        ]
        validity = _ANY_TIME if VALIDITY in lift else valid_at(self.as_of)
        return Question(asked.query, asked.language, both(validity, *conditions), self._vectors[case])
