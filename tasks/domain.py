"""The nouns of kbgate: what is asked, and what is searched. One thing is a frozen record; what grows with chunks or hits is
a table (`tables`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TypeAlias

from kbgate.tasks.errors import Problem
from kbgate.tasks.schema import BaselineCard, BaselineCase, BaselineSummary
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Hits, Rows, Scalar, Value, Vectors

Predicate: TypeAlias = Mapping[str, "Scalar | Mapping[str, Value] | Sequence[Predicate]"]
"""`{field: value}`, `{field: {operator: value}}`, `{"$and": [..]}` or `{"$or": [..]}`."""


class Outcome(StrEnum):
    """What became of one question."""

    ANSWERED = "answered"
    EMPTY = "empty"
    TIMEOUT = "timeout"
    RAISED = "raised"
    MALFORMED = "malformed"

    @property
    def measured(self) -> bool:
        """False where the retriever failed: such a case scores 0, is counted, and never leaves a denominator."""
        return self in (Outcome.ANSWERED, Outcome.EMPTY)


class Mode(StrEnum):
    """Which cases are asked."""

    FULL = "full"
    FAST = "fast"


@dataclass(frozen=True, slots=True)
class Card:
    """One knowledge-base entry: the unit that is cited."""

    id: str
    title: str
    text: str
    language: str = ""
    concept: str = ""
    """The same in all translations of a card."""
    description: str = ""
    tier: str = ""
    """gold: a curated synthesis; silver: a source; or ""."""
    domain: str = ""
    topics: tuple[str, ...] = ()
    valid_from: str = ""
    valid_until: str = ""
    """As they are written: a day or an instant, see `clock`; "" for an open end."""
    updated_at: str = ""
    source_url: str = ""
    metadata: Mapping[str, Value] = field(default_factory=dict)
    hash: str = ""
    """16 hex digits of all that a reader of the card could see."""
    file: str = ""
    line: int = 0
    """Where it was read."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Gold as a span of a card's text: verbatim, or by character offsets (end exclusive)."""

    card: str
    text: str | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One question of the golden set, with what must be found."""

    id: str
    query: str
    kind: str = "golden"
    """golden, adversarial or no_match."""
    language: str = ""
    groups: tuple[tuple[str, ...], ...] = ()
    """What suffices: AND between groups, OR inside one."""
    grades: Mapping[str, int] = field(default_factory=dict)
    """What is relevant: grade, 1 or more, by card."""
    filter: Predicate | None = None
    entitled: Predicate | None = None
    right_filter: Predicate | None = None
    """What `filter` should have been, where that is labelled."""
    canary: bool = False
    cluster: str = ""
    """Cases of one cluster move together: translations and paraphrases of one question."""
    numeric: bool = False
    attack: str = ""
    topic: str = ""
    intent: str = ""
    evidence: tuple[Evidence, ...] = ()
    hash: str = ""
    """16 hex digits of what makes two runs of the case comparable."""
    file: str = ""
    line: int = 0


Cards = Mapping[str, Card]
Cases = Mapping[str, Case]


@dataclass(frozen=True, slots=True)
class KnowledgeBase:
    """The cards, by id and in the order of their ids, and what was to be a card and is none."""

    cards: Cards
    problems: tuple[Problem, ...] = ()
    """Everything that is wrong with its files, several to a card where there are."""
    rejected: Mapping[str, Problem] = field(default_factory=dict)
    """By the id it has: what is wrong with a card that was refused, the first mistake. Another card may bear the id."""
    nameless: tuple[Problem, ...] = ()
    """The first mistake of each refused card of which nobody knows which one it is."""
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Files of its folder that are not read, by the reason."""

    @property
    def refusals(self) -> int:
        """How many cards were refused."""
        return len({(problem.file, problem.line) for problem in self.problems})

    def refusal(self, card: str) -> Problem | None:
        """Why a card is not among the cards, where it is because it was refused."""
        return None if card in self.cards else self.rejected.get(card)


@dataclass(frozen=True, slots=True)
class GoldenSet:
    """The cases, by id and in the order of their file, and the lines that are not cases."""

    cases: Cases
    problems: tuple[Problem, ...] = ()
    unjudged: int = 0
    """Questions of a BEIR folder that have no judgment and are therefore not asked."""


@dataclass(frozen=True, slots=True)
class Vanished:
    """Gold that was there when the baseline was accepted and is gone: the label is right, the knowledge base lost it."""

    case: str
    card: str
    excerpt: str = ""
    """The evidence that no longer stands in the card; "" where the card itself is gone."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The accepted scores of a suite."""

    summary: BaselineSummary
    cases: Mapping[str, BaselineCase]
    cards: Mapping[str, BaselineCard]
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding model, known by its weights."""

    name: str
    weights: str
    """sha256 over every file that shapes a vector."""
    folder: Path


@dataclass(frozen=True, slots=True)
class Inputs:
    """A suite's files, read and held against each other."""

    suite: Suite
    kb: KnowledgeBase
    golden: GoldenSet
    baseline: Baseline | None
    vanished: tuple[Vanished, ...] = ()
    announced: tuple[str, ...] = ()
    """Cards an ingest says it brought."""
    judges_edits: bool = False
    """Whether an edited case must also pass as the baseline words it: a pull request may not reword what it breaks."""


class Sample(IntEnum):
    """How many rows, and how many questions, an exam embeds again to hold them against its vectors."""

    EACH_RUN = 16
    AT_PROMOTION = 467
    """Beside the 8 of golds 459: of vectors of which one in a hundred is wrong, it finds one with 99 %."""
    ALL = sys.maxsize


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What an index is built from."""

    rows: Rows
    vectors: Vectors
    """One unit vector a row, in the rows' order; of no dimensions where the method asks for none."""
    model: Model | None
    """None where the method asks for no vectors."""
    chunks: int
    """How many chunks the rows stand for."""
    fingerprint: str
    settings: str
    """Digest of how cards become rankings, whatever the cards."""
    sample: Sample = Sample.EACH_RUN
    questions: dict[str, Vectors] = field(default_factory=dict)
    """By case: the vector of each question that was embedded so far; it grows, for a sample is drawn from all of them."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What came into the knowledge base since a run that was green."""

    since: str
    """The run's id, or "the baseline"."""
    batch: str = ""
    """What the ingest called it."""
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """What is searched: rows, their vectors, the store that holds them."""

    rows: Rows
    vectors: Vectors
    store: str | None = None
    """A folder, or the URL of a server; None: it stands in memory alone, and is searched exactly."""
    build: str = ""
    """The collection's name: suite, fingerprint and run, so that two builds of one fingerprint are told apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One thing asked of an index."""

    text: str
    language: str = ""
    where: Predicate = field(default_factory=dict)
    """Validity, `filter` and `entitled` as one predicate in the store's own values."""
    vector: Vectors | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """What one question brought back."""

    outcome: Outcome
    lanes: Mapping[str, Hits] = field(default_factory=dict)
    ms: float = 0.0
    extended: bool = False
    detail: str = ""
    lane_ms: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds each lane took, for a method that has lanes."""
