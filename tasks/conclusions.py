"""What an exam comes to: reasons, a verdict, an evaluation; and what each flow returns, whatever the moment."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from kbgate.tasks.clock import Clock
from kbgate.tasks.domain import Arrivals, Baseline, Cases, KnowledgeBase, Vanished
from kbgate.tasks.findings import Diagnosis
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
    explained: tuple[str, ...] = ()
    """Failing cases of which every missing gold has a proven cause; looked for where [acceptance] asks."""
    earlier: Earlier | None = None
    """Edited cases as they were worded before; None where nothing had to be asked so."""

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


class Result(Protocol):
    """What every flow returns, and every caller needs."""

    @property
    def name(self) -> VerdictName:
        """The verdict's name."""

    @property
    def exit_code(self) -> int:
        """0 to 4."""

    @property
    def summary(self) -> str:
        """The reasons, for a person."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict that stands: the last run judged exactly what is there now."""

    run: str
    name: VerdictName
    exit_code: int

    @property
    def summary(self) -> str:
        """That nothing was examined again, and where the verdict is from."""
        return f"nothing changed since run {self.run}, which ended {self.name}"


@dataclass(frozen=True, slots=True)
class NightlyRow:
    """One suite of a night."""

    suite: str
    verdict: VerdictName
    exit_code: int
    worst: str
    """The worst change, or what went wrong."""


@dataclass(frozen=True, slots=True)
class Night:
    """A night: one row per suite."""

    rows: tuple[NightlyRow, ...]

    @property
    def name(self) -> VerdictName:
        """The gravest verdict of the night; ERROR where nothing was examined."""
        return max((row.verdict for row in self.rows), key=lambda name: name.gravity, default=VerdictName.ERROR)

    @property
    def exit_code(self) -> int:
        """The exit code of the gravest row."""
        return next((row.exit_code for row in self.rows if row.verdict == self.name), 4)

    @property
    def summary(self) -> str:
        """A line a suite."""
        return "; ".join(f"{row.suite}: {row.verdict}, {row.worst}" for row in self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class PullRequest:
    """A change, judged by the target branch's baseline and gates."""

    subset: Evaluation
    """The fast subset and the touched cases."""
    deciding: Evaluation
    """The full set where no subset could decide, otherwise the subset."""
    own: Verdict | None
    """The verdict by the change's own baseline and gates, where it edits either; never decisive."""
    ref: str
    full: str = ""
    """Why the full set decided; "" where the subset did."""

    @property
    def name(self) -> VerdictName:
        """The deciding verdict; at least WARN where the change edits what it is judged by."""
        name = self.deciding.verdict.name
        return VerdictName.WARN if self.own is not None and name == VerdictName.PASS else name

    @property
    def exit_code(self) -> int:
        """The deciding verdict's."""
        return self.deciding.verdict.exit_code

    @property
    def summary(self) -> str:
        """The deciding reasons, and that the change edits what it is judged by."""
        edits = f"the change edits its own baseline or gates; judged by those of {self.ref}" if self.own else ""
        return "; ".join(part for part in (self.deciding.summary, edits) if part)


@dataclass(frozen=True, slots=True, eq=False)
class Promotion:
    """A candidate that was examined in production, and served or not."""

    evaluation: Evaluation
    promoted: bool
    served: str
    """The build that is served now; "" for none."""
    lag_s: float | None = None
    """Seconds from the newest card's `updated_at` to the moment it was served."""
    unaccepted: str = ""
    """Why it is served and did not become the baseline, although that was asked for; "" where it did or was not."""
    damage: str = ""
    """What was wrong with the build that was served before; "" for nothing."""

    @property
    def name(self) -> VerdictName:
        """The exam's verdict where it was let in, otherwise BLOCK: everything else leaves production untouched."""
        return self.evaluation.verdict.name if self.promoted else VerdictName.BLOCK

    @property
    def exit_code(self) -> int:
        """0 where the candidate is served, 1 where production is untouched."""
        return 0 if self.promoted else 1

    @property
    def summary(self) -> str:
        """What is served, and why."""
        damage = f"; of what was served: {self.damage}" if self.damage else ""
        if self.promoted:
            lag = "" if self.lag_s is None else f"; its newest card was updated {self.lag_s / 3600:.1f} hours ago"
            unaccepted = f"; the baseline stays as it is: {self.unaccepted}" if self.unaccepted else ""
            return f"{self.served} is served{lag}{unaccepted}{damage}"
        return f"production stays at {self.served or 'nothing'}; {self.evaluation.name}: {self.evaluation.summary}{damage}"
