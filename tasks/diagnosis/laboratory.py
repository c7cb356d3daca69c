"""One knowledge base, and the same with one thing changed: what its baseline was, and what each question would find."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from kbgate.tasks.baseline.review import cards_of_baseline
from kbgate.tasks.diagnosis.variants import AS_IS, Change, Pieces, Ranking, Variants
from kbgate.tasks.domain import Inputs, KnowledgeBase, Material, Question
from kbgate.tasks.errors import KbgateError
from kbgate.tasks.index.chunking import chunk
from kbgate.tasks.index.embedding import embed_queries, embed_rows, identify_model
from kbgate.tasks.index.fingerprint import pipeline_of
from kbgate.tasks.index.store import build_rows
from kbgate.tasks.index.vectors import Vectors
from kbgate.tasks.predicates import STARTS, both, in_store_values, matches, store_fields, valid_on
from kbgate.tasks.runs.archive import recall_cards
from kbgate.tasks.settings import Chunking, Embedding, IndexSettings, Retrieval, Section
from kbgate.tasks.tables import CARD_COLUMNS, rows_of

T = TypeVar("T")
VALIDITY, FILTER, ACCESS = "validity", "filter", "access"
"""The three conditions a question puts on cards, any of which may be lifted."""


class Laboratory:
    """A suite's index in memory, and its baseline's cards where they are still known."""

    def __init__(self, inputs: Inputs, material: Material, cases: pd.DataFrame, vectors: Vectors, day: dt.date, home: Path):
        """`vectors`: one per case, in their order; `home`: kbgate's, with vectors, cards and terms."""
        self.inputs, self.material, self._asked, self.day, self.home = inputs, material, cases, day, home
        self.suite, self.cards = inputs.suite, {card["id"]: card for card in rows_of(inputs.kb.cards)}
        self.cases = {case["id"]: case for case in rows_of(cases)}
        self._vectors = dict(zip(cases["id"], vectors, strict=True))
        self._variants = Variants(inputs.suite, material.rows, material.members, material.vectors, home)
        self._known: dict[Any, Ranking] = {}
        self._made: dict[str, Any] = {}

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes of the suite's method."""
        return self._variants.lanes

    # ------------------------------------------------------------ what changed since the baseline

    @cached_property
    def known_then(self) -> dict[str, str]:
        """The baseline's cards: id to content hash; empty without a baseline."""
        return {card: row["hash"] for card, row in self.inputs.baseline.cards.items()} if self.inputs.baseline else {}

    @cached_property
    def came(self) -> frozenset[str]:
        """Cards that are new or changed since the baseline; none without one."""
        if not self.known_then:
            return frozenset()
        return frozenset(name for name, card in self.cards.items() if self.known_then.get(name) != card["hash"])

    def is_as_it_was(self, card: str) -> bool:
        """Whether the baseline knew a card exactly as it is now."""
        return card in self.known_then and card not in self.came

    def edit_matters(self, case: str, card: str, of_evidence: bool = False) -> bool:
        """Whether a card was edited and, where it is known as it was, is back once that is undone.

        `of_evidence`: what is missing is not its rank, so that it was edited suffices.
        """
        old = self.as_it_was(card)
        if card not in self.came or old is None or of_evidence:
            return card in self.came
        return self.brings_back(case, card, self.once(f"as it was: {card}", lambda: self.replaced(old)))

    @cached_property
    def left(self) -> frozenset[str]:
        """Cards of the baseline that are no longer there."""
        return frozenset(self.known_then) - frozenset(self.cards)

    def edited(self, case: str) -> bool:
        """Whether a case is not what it was in the baseline."""
        row = self.inputs.baseline.cases.get(case) if self.inputs.baseline else None
        return row is None or row["hash"] != self.cases[case]["hash"]

    @cached_property
    def _old(self) -> dict[str, dict[str, Any]]:
        lost = {value for card, value in self.known_then.items() if card in self.came or card not in self.cards}
        found = recall_cards(self.home, self.suite.name, lost)
        if lost - set(found):
            with contextlib.suppress(KbgateError):
                then = cards_of_baseline(self.suite)
                # By content hash: whatever else that commit holds is not what the baseline was made of.
                found |= {row["hash"]: row for row in rows_of(then) if row["hash"] in lost} if then is not None else {}
        return found

    def as_it_was(self, card: str) -> dict[str, Any] | None:
        """A changed or removed card as the baseline knew it; None where that is not kept, or nothing changed."""
        row = self._old.get(self.known_then.get(card, ""))
        return {**row, "id": card} if row else None

    @cached_property
    def turned(self) -> dict[str, tuple[Any, Any]]:
        """Settings that make rankings and differ from the baseline's, as `section.name`: (then, now)."""
        if self.inputs.baseline is None:
            return {}
        then, now = self.inputs.baseline.summary["provenance"].get("pipeline"), pipeline_of(self.suite)
        found = {
            f"{section}.{name}": (then.get(section, {}).get(name), value)
            for section, values in now.items()
            for name, value in values.items()
            if then and then.get(section, {}).get(name) != value
        }
        weights = self.inputs.baseline.summary["provenance"].get("model", {}).get("weights")
        if weights and weights != self.material.model.weights and "embedding.model" not in found:
            found["embedding.model"] = (f"weights {weights[:12]}", f"weights {self.material.model.weights[:12]}")
        return found

    def under_the_baselines(self, *sections: str) -> Laboratory | None:
        """This knowledge base under the baseline's settings of these sections; None where they are not known.

        Raises `InputError` where the baseline's model is not to be had.
        """
        return self.once(f"under {sections}", lambda: self._under(sections))

    def _under(self, sections: tuple[str, ...]) -> Laboratory | None:
        then = self.inputs.baseline.summary["provenance"].get("pipeline") if self.inputs.baseline else None
        if not then:
            return None
        known: dict[str, type[Section]] = {
            "chunking": Chunking,
            "embedding": Embedding,
            "index": IndexSettings,
            "retrieval": Retrieval,
        }
        update: dict[str, Any] = {name: known[name].model_validate(then[name]) for name in sections}
        if "embedding" in update:
            update["embedding"] = update["embedding"].model_copy(update={"batch": self.suite.embedding.batch})
        suite = self.suite.model_copy(update=update)
        rows, members = build_rows(suite, self.inputs.kb, chunk(suite, self.inputs.kb))
        model = identify_model(suite)
        material = dataclasses.replace(
            self.material, rows=rows, members=members, vectors=embed_rows(suite, model, rows, self.cache), model=model
        )
        vectors = embed_queries(suite, model, self._asked, self.cache)
        return Laboratory(dataclasses.replace(self.inputs, suite=suite), material, self._asked, vectors, self.day, self.home)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What a rule works out for all its golds, made the first time."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    @property
    def cache(self) -> Path:
        """The vector cache."""
        return self.home / "vectors"

    # ------------------------------------------------------------ one thing changed

    def pieces(self, cards: Iterable[Mapping[str, Any]], *, whole: bool = False) -> Pieces:
        """What stands in for cards that are given anew; `whole`: each as one chunk."""
        suite = self.suite
        if whole:
            suite = suite.model_copy(update={"chunking": suite.chunking.model_copy(update={"method": "whole"})})
        kb = KnowledgeBase(pd.DataFrame([dict(card) for card in cards], columns=list(CARD_COLUMNS), dtype=object))
        rows, members = build_rows(suite, kb, chunk(suite, kb))
        return Pieces(rows, members, embed_rows(suite, self.material.model, rows, self.cache))

    def replaced(self, *cards: Mapping[str, Any], whole: bool = False) -> Change:
        """The cards of these ids as they are given here, or put back where they are gone."""
        return Change(frozenset(card["id"] for card in cards), self.pieces(cards, whole=whole))

    def added(self, *cards: Mapping[str, Any], whole: bool = False) -> Change:
        """More rows of cards beside those they have."""
        return Change(frozenset(), self.pieces(cards, whole=whole))

    def undone(self, cards: Sequence[str]) -> Change:
        """New cards gone, changed and removed ones as they were; a changed one that is not known any more is gone too."""
        old = [row for card in cards if (row := self.as_it_was(card)) is not None]
        return Change(frozenset(cards), self.pieces(old) if old else None)

    # ------------------------------------------------------------ asking

    def ask(self, case: str, change: Change = AS_IS, lift: frozenset[str] = frozenset()) -> Ranking:
        """What a case's question would find after a change, and with some of its conditions lifted."""
        key = (case, change, lift)
        if key not in self._known:
            self._known[key] = self._variants.search(self._question(case, lift), change)
        return self._known[key]

    def brings_back(self, case: str, card: str, change: Change = AS_IS, lift: frozenset[str] = frozenset()) -> bool:
        """Whether a card that is not in the top k would be, after a change."""
        rank = self.ask(case, change, lift).rank(card)
        return rank is not None and rank <= self.suite.top_k

    def similarity(self, one: str, other: str) -> float:
        """Cosine similarity of the nearest rows of two cards."""
        return self._variants.similarity(one, other)

    def hides(self, case: str, card: str) -> frozenset[str]:
        """The conditions of a case (validity, filter, access) that a card does not satisfy."""
        row, fields = self.cases[case], store_fields(self.cards[card], self.suite.kb.filterable)
        put = {VALIDITY: valid_on(self.day), FILTER: row["filter"], ACCESS: row["entitled"]}
        written = {
            name: value if name == VALIDITY else in_store_values(value) for name, value in put.items() if value is not None
        }
        return frozenset(name for name, predicate in written.items() if not matches(predicate, fields))

    def _question(self, case: str, lift: frozenset[str]) -> Question:
        row = self.cases[case]
        held = {FILTER: row["filter"], ACCESS: row["entitled"]}
        conditions = [in_store_values(held[name]) for name in (FILTER, ACCESS) if held[name] is not None and name not in lift]
        validity = _ANY_DAY if VALIDITY in lift else valid_on(self.day)
        return Question(row["query"], row["language"], both(validity, *conditions), self._vectors[case])


_ANY_DAY = {STARTS: {"$lte": dt.date.max.toordinal()}}
"""What every card satisfies."""
