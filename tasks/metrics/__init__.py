"""Metrics, one decorated function each: `@metric(name, source=...)` on `f(case, k)`, in the file of its kind.

A metric looks at one `Judged` case and returns its figure, or None where it is not defined: it then contributes no key,
never a 0. Add one here and it is computed, stored, compared, reported and listed by `kbgate metrics`. A figure of a whole
run, where a mean over cases would mean nothing, is an `@aggregate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypedDict, Unpack

from kbgate.tasks.registry import Registry, first_line
from kbgate.tasks.results import Run
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Figure


@dataclass(frozen=True, slots=True)
class Judged:
    """One case's ranking beside what it should have held: all that a metric may look at."""

    ranking: tuple[str, ...]
    """Card ids in rank order, each once."""
    groups: tuple[frozenset[str], ...] = ()
    """What suffices: AND between groups, OR inside one; only gold the asker is entitled to."""
    grades: Mapping[str, float] = field(default_factory=dict)
    """What is relevant, by card id, each above 0."""
    family: frozenset[str] = frozenset()
    """Gold cards and their translations."""
    tier_gold: frozenset[str] = frozenset()
    """Cards that are curated syntheses."""
    filtered_gold: frozenset[str] | None = None
    """The entitled gold that `filter` lets through; None where the case has no gold to lose."""
    outside: int | None = None
    """Hits outside `entitled`; None where the case has no access predicate."""
    approximate: tuple[str, ...] = ()
    """Card ids as the approximate lane ranked them; the ranking itself where the method has no such lane."""
    exact: tuple[str, ...] = ()
    """Card ids by exact search over the same vectors."""
    failed: bool = False
    """True where the retriever gave no answer at all."""
    scores: tuple[float, ...] = ()
    """The ranking's scores, in its order; empty where only ranks are known."""
    accepted: tuple[str, ...] | None = None
    """The top k the baseline holds for the case; None where it holds none."""
    repeats: frozenset[str] = frozenset()
    """Ranked cards whose text stands on a card above them already."""
    filtered: int | None = None
    """How many cards `filter` lets through, of those the asker may see; None where no right filter is labelled."""
    intended: int | None = None
    """How many `right_filter` would let through."""
    agreed: int | None = None
    """How many both let through."""
    refuses: bool = False
    """Whether the suite has a `min_similarity`, below which nothing is answered."""
    pass_mark: float = 0.9
    """The contract below which the suite calls a case failing."""
    noise_ceiling: float | None = None
    """The most noise the suite calls healthy where an answer needs so many cards; None where [acceptance] is not written."""

    @property
    def has_gold(self) -> bool:
        """Whether a ranking metric is defined for the case."""
        return bool(self.groups)


class Part(Protocol):
    """What a metric and an aggregate have in common: how a figure is called and read."""

    @property
    def name(self) -> str:
        """What it is called in settings and files."""

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""

    @property
    def source(self) -> str:
        """Where it is defined."""

    @property
    def version(self) -> int:
        """Raised whenever the same ranking would give another figure."""

    @property
    def at_k(self) -> bool:
        """False where the figure has no cut-off: its key is the bare name."""

    @property
    def higher_is_better(self) -> bool | None:
        """Which way is up; None where more is as good as less: there is nothing to lose, and no tolerance."""

    @property
    def low(self) -> float:
        """The least a figure can be."""

    @property
    def high(self) -> float:
        """The most a figure can be."""

    @property
    def unit(self) -> str:
        """What a figure of 1 is: a share, a number of cards, milliseconds."""

    @property
    def judges_gold(self) -> bool:
        """True where the figure says whether gold was found; a gate without one such figure judges nothing."""

    @property
    def stored(self) -> bool:
        """False where no baseline holds the figure: it then has no tolerance."""


class Reading(TypedDict, total=False):
    """How a figure is to be read; what is left out has the defaults of `Metric` and `Aggregate`."""

    version: int
    higher_is_better: bool | None
    low: float
    high: float
    unit: str
    judges_gold: bool
    stored: bool


class MetricReading(Reading, total=False):
    """What only a metric of single cases declares."""

    at_k: bool
    at_candidates: bool
    monotone: bool


Compute = Callable[[Judged, int], float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """A declared metric: how it is computed for one case, and how its figure is to be read."""

    name: str
    compute: Compute
    """None where the metric is not defined for the case: it then contributes no key, never a 0."""
    source: str
    version: int = 1
    at_k: bool = True
    at_candidates: bool = False
    """True where the figure is also computed at depth `retrieval.candidates`."""
    higher_is_better: bool | None = True
    low: float = 0.0
    high: float = 1.0
    judges_gold: bool = True
    monotone: bool = True
    """True where moving a relevant card up can never worsen the figure."""
    unit: str = "share"
    stored: bool = True

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""
        return first_line(self.compute)


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of a whole run."""

    lane: str
    value: float
    n: int


Measure = Callable[[Run, Mapping[str, bool]], Iterator[Measured]]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A declared figure of a whole run, where a mean over cases would mean nothing: an area under a curve, a percentile."""

    name: str
    measure: Measure
    """`f(run, has_gold)`; has_gold by case, without those whose asker may see none of it. Yields nothing where it cannot be
    measured."""
    source: str
    version: int = 1
    higher_is_better: bool | None = True
    low: float = 0.0
    high: float = 1.0
    unit: str = "share"
    judges_gold: bool = False
    stored: bool = False
    at_k: bool = False

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""
        return first_line(self.measure)


METRICS: Registry[Metric] = Registry("metric", __name__)
AGGREGATES: Registry[Aggregate] = Registry("aggregate", __name__)


def metric(name: str, *, source: str, **reading: Unpack[MetricReading]) -> Callable[[Compute], Metric]:
    """Declare a metric: `@metric("recall", source="...") def recall(case, k)`."""

    def declare(compute: Compute) -> Metric:
        part = Metric(name, compute, source, **reading)
        METRICS.add(name, part)
        return part

    return declare


def aggregate(name: str, *, source: str, **reading: Unpack[Reading]) -> Callable[[Measure], Measure]:
    """Declare a figure of a whole run: `@aggregate("auroc", source="...") def auroc(run, has_gold)`."""

    def declare(measure: Measure) -> Measure:
        AGGREGATES.add(name, Aggregate(name, measure, source, **reading))
        return measure

    return declare


def part_of(figure: Figure) -> Part:
    """What a figure is a figure of; raises `UnknownPart`."""
    return AGGREGATES[figure.metric] if figure.metric in AGGREGATES else METRICS[figure.metric]


def better(part: Part) -> str:
    """Which way is up, in a word: higher, lower or neither."""
    return "neither" if part.higher_is_better is None else "higher" if part.higher_is_better else "lower"


def known(name: str) -> bool:
    """Whether any figure has this metric's name."""
    return name in METRICS or name in AGGREGATES


def figure_at(part: Part, k: int) -> Figure:
    """A part's figure at a cut-off, where it has one."""
    return Figure(part.name, k if part.at_k else None)


def figure_of(name: str, suite: Suite) -> Figure:
    """What a line of [gates] or a [[slice]] speaks of: METRIC@k, or METRIC at the verdict's k."""
    figure = Figure.parse(name)
    return figure if figure.k is not None else figure_at(part_of(figure), suite.top_k)


def cuts_of(part: Metric, suite: Suite) -> tuple[int, ...]:
    """The cut-offs a metric is computed at in a suite; one of them, unused, for a metric that has none."""
    if not part.at_k:
        return (suite.top_k,)
    return tuple(sorted({*suite.cuts, *([suite.retrieval.candidates] if part.at_candidates else [])}))


def figures_of(suite: Suite) -> tuple[Figure, ...]:
    """Every figure of single cases that a run of the suite can carry, in the order reports print them."""
    return tuple(figure_at(part, k) for part in METRICS.values() for k in cuts_of(part, suite))
