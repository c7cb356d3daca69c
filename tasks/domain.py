"""The nouns of kbgate. One thing is a frozen dataclass; many rows are a DataFrame with the columns of `tables`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kbgate.tasks.errors import Problem
from kbgate.tasks.findings import Diagnosis
from kbgate.tasks.settings import Suite


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


@dataclass(frozen=True)
class KnowledgeBase:
    """The cards, and the lines that are none."""

    cards: pd.DataFrame
    problems: tuple[Problem, ...] = ()
    rejected: Mapping[str, Problem] = field(default_factory=dict)
    """By the id it would have had: what is wrong with a card that was refused, the first thing found."""


@dataclass(frozen=True)
class GoldenSet:
    """The cases, and the lines that are none."""

    cases: pd.DataFrame
    problems: tuple[Problem, ...] = ()
    unjudged: int = 0
    """Questions of a BEIR folder that have no judgment and are therefore not asked."""


@dataclass(frozen=True)
class Vanished:
    """Gold that was there when the baseline was accepted and is gone: the label is right, the knowledge base lost it."""

    case: str
    card: str
    excerpt: str = ""
    """The evidence that no longer stands in the card; "" where the card itself is gone."""


@dataclass(frozen=True)
class Baseline:
    """The accepted scores of a suite."""

    summary: dict[str, Any]
    """What baseline.json says: means with n, provenance, fingerprints, metric versions, reason."""
    cases: dict[str, dict[str, Any]]  # by id: hash, cluster, canary, tier_gold, outcome, scores, gold_ranks, top, kth
    cards: dict[str, dict[str, Any]]  # by id: hash, tier, domain
    fingerprint: str


@dataclass(frozen=True)
class Model:
    """An embedding model, known by its weights."""

    name: str
    weights: str
    """sha256 over every file that shapes a vector."""
    folder: Path


@dataclass(frozen=True)
class Inputs:
    """A suite's files, read and held against each other."""

    suite: Suite
    kb: KnowledgeBase
    golden: GoldenSet
    baseline: Baseline | None
    vanished: tuple[Vanished, ...] = ()
    announced: tuple[str, ...] = ()
    """Cards an ingest says it brought."""


@dataclass(frozen=True)
class Material:
    """What an index is built from."""

    rows: pd.DataFrame
    members: pd.DataFrame
    vectors: np.ndarray[Any, np.dtype[np.float32]]
    model: Model
    chunks: int
    """How many chunks the rows stand for."""
    fingerprint: str
    settings: str
    """Digest of how cards become rankings, whatever the cards."""


@dataclass(frozen=True)
class Arrivals:
    """What came into the knowledge base since a run that was green."""

    since: str
    """The run's id, or "the baseline"."""
    batch: str = ""
    """What the ingest called it."""
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Index:
    """What is searched: rows, their vectors, the store that holds them."""

    rows: pd.DataFrame  # ROW_COLUMNS
    members: pd.DataFrame  # MEMBER_COLUMNS
    vectors: np.ndarray[Any, np.dtype[np.float32]]  # one unit vector per row, in the rows' order
    store: str
    """A folder, or the URL of a server; "" where the index stands in memory alone, and is searched exactly."""
    build: str
    """The collection's name: suite, fingerprint and run, so that two builds of one fingerprint are told apart."""


@dataclass(frozen=True)
class Question:
    """One thing asked of an index."""

    text: str
    language: str = ""
    where: Mapping[str, Any] | None = None
    """Validity, `filter` and `entitled` as one predicate in the store's own values."""
    vector: np.ndarray[Any, np.dtype[np.float32]] | None = None


@dataclass(frozen=True)
class Ranked:
    """What one question brought back."""

    outcome: Outcome
    lanes: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)
    """By lane: (card id, score) in rank order."""
    ms: float = 0.0
    extended: bool = False
    detail: str = ""
    lane_ms: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds each lane took, for a method that has lanes."""


@dataclass(frozen=True)
class Run:
    """The rankings one method gave for a set of cases."""

    method: str
    hits: pd.DataFrame
    answers: pd.DataFrame
    mode: str = "full"


@dataclass(frozen=True)
class Scores:
    """What a run is worth, case by case."""

    figures: pd.DataFrame  # SCORE_COLUMNS
    placements: pd.DataFrame  # PLACEMENT_COLUMNS


@dataclass(frozen=True)
class Previous:
    """The run before this one: the same golden set, asked in the same mode."""

    run: str
    means: Mapping[str, Mapping[str, float]]
    """By figure: mean, n."""


@dataclass(frozen=True)
class Comparison:
    """A run beside its baseline, over the cases that did not change."""

    figures: pd.DataFrame  # FIGURE_COLUMNS
    changes: pd.DataFrame  # CHANGE_COLUMNS
    common: tuple[str, ...] = ()
    """Cases that are the same in both and were asked: what is averaged."""
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    incomparable: tuple[str, ...] = ()
    """Why the two cannot be compared at all, a sentence each."""

    def blind_spot(self, lane: str, key: str) -> str:
        """The fall of a figure that these cases could not have shown, as half a sentence; "" where none was compared."""
        own = self.figures[(self.figures["lane"] == lane) & (self.figures["slice"] == "") & (self.figures["metric"] == key)]
        if own.empty or not own["visible"].notna().all():
            return ""
        points, n, clusters = 100 * float(own["visible"].iloc[0]), int(own["n"].iloc[0]), int(own["clusters"].iloc[0])
        apart = f" in {clusters} clusters" if clusters < n else ""
        return f"a fall of {points:.1f} points or less would not show at n = {n}{apart}"


@dataclass(frozen=True)
class Exam:
    """All that a check of the gate may look at."""

    suite: Suite
    kb: KnowledgeBase
    asked: pd.DataFrame
    """The cases that had to be asked in this mode."""
    golden: pd.DataFrame
    """Every case of the golden set."""
    baseline: Baseline | None
    run: Run
    scores: Scores
    comparison: Comparison
    today: dt.date
    """The day of the run: allowances end and baselines age by it."""
    vanished: tuple[Vanished, ...] = ()
    touched: tuple[str, ...] = ()
    """Asked beside the fast subset, because the change may touch them: judged, and left out of its means."""
    announced: tuple[str, ...] = ()
    previous: Previous | None = None
    explained: tuple[str, ...] = ()
    """Failing cases of which every missing gold has a proven cause; looked for where [acceptance] asks."""


@dataclass(frozen=True)
class Reason:
    """One thing that keeps a verdict from PASS, as a sentence."""

    check: str
    level: str
    """error, critical, inconclusive, supporting or advisory."""
    sentence: str
    cases: tuple[str, ...] = ()
    code: str = ""
    """For inconclusive: no_baseline, incomparable, no_gates or underpowered."""


@dataclass(frozen=True)
class Verdict:
    """The gate's answer."""

    name: str
    """PASS, WARN, BLOCK, INCONCLUSIVE or ERROR."""
    exit_code: int
    reasons: tuple[Reason, ...] = ()
    code: str = ""
    """For INCONCLUSIVE: no_baseline, incomparable, no_gates or underpowered."""
    provisional: bool = False
    """True for a red fast run: the full set decides."""


@dataclass(frozen=True)
class Evaluation:
    """One finished exam: everything a report, a verdict file or a baseline is made from."""

    exam: Exam
    verdict: Verdict
    run_id: str
    build: str
    """The collection that was examined; promotion accepts no other."""
    folder: Path
    started: dt.datetime
    as_of: dt.date
    fingerprints: Mapping[str, str]
    provenance: Mapping[str, Any]
    arrivals: Arrivals | None = None
    diagnosis: Diagnosis = field(default_factory=Diagnosis)

    @property
    def name(self) -> str:
        """The verdict's name."""
        return self.verdict.name

    @property
    def exit_code(self) -> int:
        """The verdict's exit code."""
        return self.verdict.exit_code

    @property
    def said(self) -> str:
        """The verdict's reasons, gravest first."""
        return "; ".join(reason.sentence for reason in self.verdict.reasons)
