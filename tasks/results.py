"""What a run gave: answers, rankings, scores, and how they compare with what was accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kbgate.tasks.domain import Case, Mode, Outcome
from kbgate.tasks.schema import Means
from kbgate.tasks.tables import NO_SCORES, NOTHING, Figure, Hits, LaneScores


@dataclass(frozen=True, slots=True)
class Answer:
    """How one case went."""

    outcome: Outcome
    ms: float
    """Milliseconds of the search alone."""
    eligible: int
    """Cards it could have returned."""
    extended: bool = False
    """Whether a lane had to be asked for more than `candidates` rows."""
    detail: str = ""
    """What went wrong, or ""."""
    predicate: str = "{}"
    """The predicate that was applied, as canonical JSON."""
    lane_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The rankings one method gave for a set of cases."""

    method: str
    answers: Mapping[str, Answer]
    """By case."""
    lanes: Mapping[str, Mapping[str, Hits]]
    """By lane and case; the lane that bears the method's name is the ranking that is judged."""
    mode: Mode = Mode.FULL
    cosine: str = ""
    """The lane whose scores are cosines of question and card, exact ones where there are any; "" for none."""
    exact: str = ""
    """The lane that was searched exactly, over the vectors; "" for none."""

    def of(self, lane: str, case: str) -> Hits:
        """The ranking of a case in a lane; nothing where it has none."""
        return self.lanes.get(lane, {}).get(case, NOTHING)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the gold of one case stands, and what its asker may see of it."""

    case: str
    hash: str
    cluster: str
    canary: bool
    tier_gold: bool
    """Whether any gold is a curated synthesis."""
    outcome: Outcome
    groups: tuple[frozenset[str], ...]
    grades: Mapping[str, float]
    ranks: Mapping[str, int | None]
    """By gold card: its rank to depth `candidates`, or None."""
    domains: tuple[str, ...]
    tiers: tuple[str, ...]
    """Of its gold cards."""
    top: tuple[str, ...]
    """The first top_k cards."""
    kth: Mapping[str, float]
    """By lane: the score at top_k, or at the ranking's end."""


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What a run is worth, case by case."""

    lanes: Mapping[str, LaneScores]
    placements: Mapping[str, Placement]

    def of(self, lane: str) -> LaneScores:
        """The figures of a lane; none where the run has no such lane."""
        return self.lanes.get(lane, NO_SCORES)


@dataclass(frozen=True, slots=True, eq=False)
class Earlier:
    """Edited cases asked once more as they were worded before, of the same index; everything by the hash of that wording."""

    run: Run
    scores: Scores
    lost: frozenset[str]
    """Wordings whose answer was an excerpt that no longer stands in its card: they fail whatever was found."""
    judged: bool
    """Whether an edited case that fails as the baseline words it is newly failing, as on a pull request."""


@dataclass(frozen=True, slots=True)
class Previous:
    """The run before this one: the same golden set, asked in the same mode."""

    run: str
    means: Means


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure of a run beside the baseline's. None: not measured."""

    lane: str
    figure: Figure
    slice: str = ""
    """"" for all cases, or such as "language=es-419"."""
    baseline: float | None = None
    current: float | None = None
    """Means over the same n cases where there is a baseline, over all asked ones where there is none."""
    delta: float | None = None
    low: float | None = None
    high: float | None = None
    """95 % interval of the delta, of current without a baseline."""
    p: float | None = None
    """One-sided, of a drop no larger than the tolerance."""
    visible: float | None = None
    """The smallest drop so many clusters would have shown."""
    n: int = 0
    clusters: int | None = None
    wins: int | None = None
    """Cases that got better; None where cases were not compared one by one."""
    ties: int | None = None
    losses: int | None = None
    since_anchor: float | None = None
    """Change since the last anchored baseline, over the anchor's own cases; of a full run, over all cases."""
    since_previous: float | None = None
    """Delta to the mean of the previous run of the same cases."""


class ChangeKind(StrEnum):
    """How a case changed sides."""

    NEWLY_FAILING = "newly_failing"
    FAILING_AS_IT_WAS = "failing_as_it_was"
    """It was edited, and as it was worded before it passed and fails now."""
    SLIPPED = "slipped"
    NEWLY_PASSING = "newly_passing"
    UNBASELINED_FAILING = "unbaselined_failing"
    ACCESS_WIDENED = "access_widened"


@dataclass(frozen=True, slots=True)
class Change:
    """A case whose passing changed, or that is new and fails."""

    kind: ChangeKind
    case: Case
    edited: bool
    canary: bool
    tier_gold: bool
    then: Mapping[str, int | None]
    """By gold card: its rank in the baseline; empty for a new case."""
    now: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run beside its baseline, over the cases that did not change."""

    figures: tuple[Compared, ...]
    changes: tuple[Change, ...] = ()
    common: tuple[str, ...] = ()
    """Cases that are the same in both and were asked: what is averaged."""
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    relabelled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Cases that ask the same under other labels, each with the labels that changed."""
    incomparable: tuple[str, ...] = ()
    """Why the two cannot be compared at all, a sentence each."""

    def figure(self, lane: str, figure: Figure) -> Compared:
        """A figure over all cases; one that was not measured where there is none."""
        rows = (row for row in self.figures if row.figure == figure and row.lane == lane and not row.slice)
        return next(rows, Compared(lane, figure))

    def of(self, lane: str) -> tuple[Compared, ...]:
        """The figures of a lane over all cases."""
        return tuple(row for row in self.figures if row.lane == lane and not row.slice)

    def changed(self, *kinds: ChangeKind) -> tuple[Change, ...]:
        """The cases that changed in one of these ways."""
        return tuple(change for change in self.changes if change.kind in kinds)
