"""Retrieval methods, one a file: `@retriever(name, scores=...)` on a function that connects to an index and returns its search.

A search takes questions and k and answers each with an `Outcome` and its lanes of `Hits`. Lanes look at
`retrieval.candidates` rows, a fixed depth, because depth changes rankings; they are rolled up to cards before anything is
fused or cut. What its scores are, which settings shape it and which of its versions stand in a fingerprint, a method says
of itself: nobody else knows it by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypedDict, Unpack

from kbgate.tasks.domain import Index, Mode, Question, Ranked
from kbgate.tasks.index.chunking import CHUNKERS
from kbgate.tasks.registry import Registry, first_line
from kbgate.tasks.results import Answer, Run
from kbgate.tasks.settings import Retrieval, Suite
from kbgate.tasks.tables import Hits, Rows
from kbgate.tasks.words.analyser import analyser_of


class ScoreKind(StrEnum):
    """What the scores of a ranking are."""

    COSINE = "cosine"
    """Cosine similarity of the question's vector with a row's, approximated or not."""
    BM25 = "bm25"
    """BM25 over the words of the embedded texts, as the lane `bm25` weighs them."""
    FUSED = "fused"
    """Made of the rankings of other lanes."""
    OTHER = "other"
    """Anything else: nothing but the method itself can say what a change does to it."""


class Search(Protocol):
    """Ask an index a batch of questions: one `Ranked` per question, in their order."""

    def __call__(self, questions: Sequence[Question], k: int) -> list[Ranked]:
        """Answer each question with at least k cards where so many are eligible."""


Connect = Callable[[Index, Suite], Search]
Fuse = Callable[[Sequence[Hits], Suite], Hits]


class Declared(TypedDict, total=False):
    """What a retrieval method may say of itself beside its name and its scores."""

    lanes: tuple[str, ...]
    vectors: bool
    short_list_is_legal: bool
    reference: str
    fuse: Fuse | None
    settings: tuple[str, ...]
    versions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Retriever:
    """A declared retrieval method."""

    name: str
    connect: Connect
    """The search is used within one run."""
    scores: ScoreKind
    lanes: tuple[str, ...] = ()
    """Methods whose rankings it fuses; empty where it ranks by itself."""
    vectors: bool = True
    """False where it looks at no vector: then nothing is embedded, and no model is part of the index."""
    short_list_is_legal: bool = False
    """True where fewer than k cards is an honest answer (words that no card has)."""
    reference: str = ""
    """The method that answers the same over the same vectors without an approximate index."""
    fuse: Fuse | None = None
    """For a method with lanes: their rankings made into one."""
    settings: tuple[str, ...] = ("candidates", "rerank", "min_similarity")
    """Keys of [retrieval] that shape its ranking: they stand in the policy's fingerprint."""
    versions: Mapping[str, int] = field(default_factory=dict)
    """Its part of the index fingerprint: raised whenever the same text would rank otherwise."""

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""
        return first_line(self.connect)


RETRIEVERS: Registry[Retriever] = Registry("retrieval method", __name__)


def retriever(name: str, *, scores: ScoreKind, **declared: Unpack[Declared]) -> Callable[[Connect], Connect]:
    """Declare a retrieval method: `@retriever("bm25", scores=ScoreKind.BM25) def bm25(index, suite)` returns its search.

    Raises ValueError for one with lanes that does not say how it fuses them, and for settings that [retrieval] does not have.
    """

    def declare(connect: Connect) -> Connect:
        part = Retriever(name, connect, scores, **declared)
        unknown = [key for key in part.settings if key not in Retrieval.model_fields]
        if unknown:
            raise ValueError(f"'{name}' names the settings {unknown}, which [retrieval] does not have")
        if part.lanes and part.fuse is None:
            raise ValueError(f"'{name}' has lanes and does not say how it fuses them")
        RETRIEVERS.add(name, part)
        return connect

    return declare


def lanes_of(method: str) -> tuple[Retriever, ...]:
    """The methods that rank by themselves in a method: its lanes, or itself."""
    return tuple(RETRIEVERS[lane] for lane in RETRIEVERS[method].lanes or (method,))


def needs_vectors(suite: Suite) -> bool:
    """Whether the suite's method looks at vectors; one that ranks by words alone embeds nothing."""
    return any(lane.vectors for lane in lanes_of(suite.retrieval.method))


def versions_of(suite: Suite, rows: Rows) -> dict[str, int | str]:
    """Parts of the index fingerprint that no setting shows: versions of the chunker, the retrieval method, what finds words."""
    versions: dict[str, int | str] = {"chunker": CHUNKERS[suite.chunking.method].version}
    parts = {part.name: part for part in (RETRIEVERS[suite.retrieval.method], *lanes_of(suite.retrieval.method))}
    for part in parts.values():
        for key, version in part.versions.items():
            # Two parts may call what they count alike: neither must hide the other's.
            versions[key if key not in versions else f"{part.name}.{key}"] = version
    if any(lane.scores is ScoreKind.BM25 for lane in lanes_of(suite.retrieval.method)):
        versions |= analyser_of(suite).versions(rows)
    return versions


def run_of(method: str, answers: Mapping[str, Answer], lanes: Mapping[str, Mapping[str, Hits]], mode: Mode) -> Run:
    """A run, with the lanes that hold cosines and exact search named as their methods declare them."""
    parts = lanes_of(method)
    cosines = [part for part in parts if part.scores == ScoreKind.COSINE]
    references = [part.reference for part in cosines if part.reference in lanes]
    # A cosine lane without a reference is its own: nothing about it is approximate.
    exact = next(iter(references), next((part.name for part in cosines if not part.reference), ""))
    return Run(method, answers, lanes, mode, cosine=exact or next((part.name for part in cosines), ""), exact=exact)
