"""What an exam comes to: reasons, a verdict, an evaluation."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kbgate.tasks.clock import Clock
from kbgate.tasks.domain import Arrivals, Baseline, Cases, KnowledgeBase, Vanished
from kbgate.tasks.findings import Causes, Diagnosis
from kbgate.tasks.results import Comparison, Earlier, Previous, Run, Scores
from kbgate.tasks.schema import Counts, Fingerprints, Provenance
from kbgate.tasks.settings import Suite


class Level(StrEnum):
    """How grave a reason is, gravest first."""

    ERROR = "error"
    CRITICAL = "critical"
    INCONCLUSIVE = "inconclusive"
    SUPPORTING = "supporting"
    ADVISORY = "advisory"

    @property
    def gravity(self) -> int:
        """0 for the gravest."""
        return list(Level).index(self)


class VerdictName(StrEnum):
    """The gate's answer, best first."""

    PASS = "PASS"
    WARN = "WARN"
    INCONCLUSIVE = "INCONCLUSIVE"
    BLOCK = "BLOCK"
    ERROR = "ERROR"

    @property
    def exit_code(self) -> int:
        """0 to 4; 2 is bad input, which has no verdict."""
        return {"BLOCK": 1, "INCONCLUSIVE": 3, "ERROR": 4}.get(self, 0)

    @property
    def green(self) -> bool:
        """Whether it lets an index be promoted."""
        return self in (VerdictName.PASS, VerdictName.WARN)

    @property
    def gravity(self) -> int:
        """0 for the best."""
        return list(VerdictName).index(self)


class Code(StrEnum):
    """Why a verdict is inconclusive."""

    NONE = ""
    NO_BASELINE = "no_baseline"
    INCOMPARABLE = "incomparable"
    NO_GATES = "no_gates"
    UNDERPOWERED = "underpowered"
    BEHIND = "behind"


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that keeps a verdict from PASS, as a sentence."""

    check: str
    level: Level
    sentence: str
    cases: tuple[str, ...] = ()
    code: Code = Code.NONE


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's answer, with its reasons, gravest first."""

    name: VerdictName
    reasons: tuple[Reason, ...] = ()
    code: Code = Code.NONE
    provisional: bool = False
    """True for a red fast run: the full set decides."""

    @property
    def headline(self) -> str:
        """The gravest sentence; "" where there is nothing but advice."""
        return next((reason.sentence for reason in self.reasons if reason.level != Level.ADVISORY), "")

    @property
    def exit_code(self) -> int:
        """0 to 4."""
        return self.name.exit_code


@dataclass(frozen=True, slots=True, eq=False)
class Exam:
    """All that a check of the gate may look at."""

    suite: Suite
    kb: KnowledgeBase
    asked: Cases
    """The cases that had to be asked in this mode."""
    golden: Cases
    """Every case of the golden set."""
    baseline: Baseline | None
    run: Run
    scores: Scores
    comparison: Comparison
    clock: Clock
    vanished: tuple[Vanished, ...] = ()
    touched: tuple[str, ...] = ()
    """Asked beside the fast subset, because the change may touch them: judged, and left out of its means."""
    announced: tuple[str, ...] = ()
    previous: Previous | None = None
    causes: Causes = field(default_factory=Causes)
    """What is proven of failing cases; looked for where [acceptance] asks."""
    earlier: Earlier | None = None
    """Edited cases as they were worded before; None where nothing had to be asked so."""
    provenance: Provenance | None = None
    """How its rankings were made; None where they were given."""

    @property
    def today(self) -> dt.date:
        """The day of the run: allowances end and baselines age by it."""
        return self.clock.today


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """One finished exam: everything a report, a verdict file or a baseline is made from."""

    exam: Exam
    verdict: Verdict
    run_id: str
    build: str
    """The collection that was examined; promotion accepts no other."""
    folder: Path
    fingerprints: Fingerprints
    provenance: Provenance
    counts: Counts
    arrivals: Arrivals | None = None
    diagnosis: Diagnosis = field(default_factory=Diagnosis)

    @property
    def started(self) -> dt.datetime:
        """When the run began."""
        return self.exam.clock.now

    @property
    def as_of(self) -> dt.datetime:
        """The instant at which validity was judged."""
        return self.exam.clock.as_of

    @property
    def name(self) -> VerdictName:
        """The verdict's name."""
        return self.verdict.name

    @property
    def exit_code(self) -> int:
        """The verdict's exit code."""
        return self.verdict.exit_code

    @property
    def summary(self) -> str:
        """What speaks against the index, gravest first, without advice."""
        return "; ".join(reason.sentence for reason in self.verdict.reasons if reason.level != Level.ADVISORY)
