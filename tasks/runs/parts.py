"""The parts of verdict.json: what reasons, figures, findings and the rest look like when written, and how they are made."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, WithJsonSchema

from kbgate.tasks.conclusions import Code, Level
from kbgate.tasks.domain import Arrivals
from kbgate.tasks.findings import Diagnosis, Finding
from kbgate.tasks.results import Compared, Previous
from kbgate.tasks.schema import Document, Mean
from kbgate.tasks.tables import DIGITS

Number = Annotated[int | float, WithJsonSchema({"type": "number"})]
"""A number that is written as it was read, so that a seal fits: 1 is not 1.0."""
Count = Annotated[int, Field(ge=0)]
Ids = list[str]


def rounded(value: float | None) -> float | None:
    """A figure as it is written: with six decimals, 1 where it is 1.0. None: not measured."""
    if value is None:
        return None
    value = round(value, DIGITS)
    return int(value) if value == int(value) else value


class Part(Document):
    """A part of a written file whose JSON schema says what the docstrings here say."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ReasonPart(Part):
    """One thing that keeps a verdict from PASS."""

    check: str
    level: Level
    sentence: Annotated[str, Field(min_length=1)]
    cases: Ids
    code: Code


class CasesPart(Part):
    """Which cases were asked and compared, and which are not as they were."""

    asked: Count
    compared: Count
    permission_only: Count
    """Cases whose asker may see none of their gold."""
    touched: Ids
    """Asked beside the fast subset, left out of its means."""
    new: Ids
    removed: Ids
    edited: Ids


class ArrivalsPart(Part):
    """What came into the knowledge base."""

    since: str
    """The last green full run, or the baseline."""
    batch: str
    new: Ids
    changed: Ids
    removed: Ids


class FindingPart(Part):
    """Why one gold card of one case is not where it should be."""

    case: str
    gold: str
    cause: str
    """`unknown`: no single change brings the gold back."""
    sentence: str
    proven: bool
    """Changing this one thing brought the gold back into the top k."""
    culprits: Ids
    evidence: dict[str, Number | None]
    above: list[Annotated[Ids, Field(min_length=2, max_length=2)]]
    """Id and title of the new or changed cards that stand above the gold."""


class GroupPart(Part):
    """Findings of one cause and one culprit."""

    cause: str
    sentence: str
    cases: Ids


class PatternPart(Part):
    """What many failures have in common."""

    name: str
    sentence: str
    look_first: str
    n: Count
    share: Number
    """Of the failures, how many it explains."""


class DiagnosisPart(Part):
    """Why it fell; changes no verdict, except that [acceptance] asks whether failing cases are explained."""

    findings: list[FindingPart]
    groups: list[GroupPart]
    patterns: list[PatternPart]
    left_out: Count
    doubts: Count
    """Rows of label_review.csv."""
    trouble: str
    """What kept the diagnosis from being made; no case has a proven cause then."""


class FigurePart(Part):
    """A figure beside the baseline's. null: not measured."""

    lane: str
    slice: Annotated[str, Field(pattern="^$|=")]
    metric: str
    """Such as `ndcg@10`."""
    baseline: Number | None
    current: Number | None
    delta: Number | None
    low: Number | None
    """95 % interval of the delta, of current where none is compared."""
    high: Number | None
    p: Number | None
    """One-sided, of a drop no larger than the tolerance."""
    visible: Number | None
    """The smallest drop so many clusters would have shown."""
    n: Count
    clusters: Count | None
    wins: Count | None
    ties: Count | None
    losses: Count | None
    since_anchor: Number | None
    since_previous: Number | None
    """Delta to the previous run, over as many cases."""


class PastMean(Part):
    """A figure of an earlier run over the cases that had it. null: not measured."""

    mean: Number | None
    n: Count


class PreviousPart(Part):
    """The run before: the same golden set, asked in the same mode."""

    run: str
    means: dict[str, PastMean]


class InputsPart(Part):
    """What the verdict rests on besides the rankings; `kbgate verify` reads it."""

    suite: str
    """The folder as it was typed."""
    floors: dict[str, Number]
    asked: Ids
    announced: Ids
    explained: Ids
    """Cases of which every missing gold has a proven cause; where [acceptance] asks."""
    previous: PreviousPart | None
    judges_edits: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether edited cases were asked as the baseline words them too, and had to pass so: on a pull request."""


def arrivals_part(arrivals: Arrivals | None) -> ArrivalsPart | None:
    """Arrivals as they are written."""
    if arrivals is None:
        return None
    return ArrivalsPart(
        since=arrivals.since,
        batch=arrivals.batch,
        new=list(arrivals.new),
        changed=list(arrivals.changed),
        removed=list(arrivals.removed),
    )


def diagnosis_part(diagnosis: Diagnosis) -> DiagnosisPart:
    """A diagnosis as it is written; of its doubts only how many."""
    return DiagnosisPart(
        findings=[_finding(finding) for finding in diagnosis.findings],
        groups=[GroupPart(cause=g.cause, sentence=g.sentence, cases=list(g.cases)) for g in diagnosis.groups],
        patterns=[
            PatternPart(name=p.name, sentence=p.sentence, look_first=p.look_first, n=p.n, share=rounded(p.share) or 0)
            for p in diagnosis.patterns
        ],
        left_out=diagnosis.left_out,
        doubts=len(diagnosis.doubts),
        trouble=diagnosis.trouble,
    )


def _finding(finding: Finding) -> FindingPart:
    return FindingPart(
        case=finding.case,
        gold=finding.gold,
        cause=finding.cause,
        sentence=finding.sentence,
        proven=finding.proven,
        culprits=list(finding.culprits),
        evidence={name: rounded(value) for name, value in finding.evidence.items()},
        above=[list(pair) for pair in finding.above],
    )


def figure_part(row: Compared) -> FigurePart:
    """A figure as it is written."""
    return FigurePart(
        lane=row.lane,
        slice=row.slice,
        metric=str(row.figure),
        baseline=rounded(row.baseline),
        current=rounded(row.current),
        delta=rounded(row.delta),
        low=rounded(row.low),
        high=rounded(row.high),
        p=rounded(row.p),
        visible=rounded(row.visible),
        n=row.n,
        clusters=row.clusters,
        wins=row.wins,
        ties=row.ties,
        losses=row.losses,
        since_anchor=rounded(row.since_anchor),
        since_previous=rounded(row.since_previous),
    )


def previous_part(previous: Previous | None) -> PreviousPart | None:
    """The run before, as it is written."""
    if previous is None:
        return None
    means = {name: PastMean(mean=rounded(mean.mean), n=mean.n) for name, mean in previous.means.items()}
    return PreviousPart(run=previous.run, means=means)


def previous_of(part: PreviousPart | None) -> Previous | None:
    """The run before, as it was written."""
    if part is None:
        return None
    means = {name: Mean(mean=past.mean, n=past.n) for name, past in part.means.items() if past.mean is not None}
    return Previous(part.run, means)
