"""Named parts, filled by decorators: a new part is one decorated function in the folder of its kind, nothing else.

A registry imports the modules of its kind when it is first asked, so a file that is dropped into the folder is found and
nothing is imported that no one asks for.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from kbgate.tasks.domain import Exam, Question, Ranked, Run
from kbgate.tasks.errors import Problem, UnknownPart, did_you_mean
from kbgate.tasks.settings import Suite

T = TypeVar("T")
Look = TypeVar("Look", bound=Callable[[Exam], Any])


class Registry(Mapping[str, T]):
    """The parts of one kind, by name; an unknown name raises `UnknownPart` with the nearest one."""

    def __init__(self, kind: str, home: str):
        self.kind, self._home = kind, home
        self._parts: dict[str, T] = {}
        self._loaded = False

    def add(self, name: str, part: T) -> None:
        """Register a part; two parts of one name are a programming error."""
        if name in self._parts:
            raise ValueError(f"two {self.kind}s are called '{name}'")
        self._parts[name] = part

    def _load(self) -> dict[str, T]:
        if not self._loaded:
            self._loaded = True
            module = importlib.import_module(self._home)
            for found in pkgutil.iter_modules(getattr(module, "__path__", [])):
                importlib.import_module(f"{self._home}.{found.name}")
        return self._parts

    def __getitem__(self, name: str) -> T:
        parts = self._load()
        if name not in parts:
            raise UnknownPart([Problem(self.kind, 0, f"unknown {self.kind} '{name}'; {did_you_mean(name, parts)}")])
        return parts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._load()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._load()))

    def __len__(self) -> int:
        return len(self._load())


def first_line(function: Callable[..., Any]) -> str:
    """The sentence a report prints about a part."""
    return (inspect.getdoc(function) or "").split("\n", 1)[0]


@dataclass(frozen=True)
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

    @property
    def has_gold(self) -> bool:
        """Whether a ranking metric is defined for the case."""
        return bool(self.groups)


@dataclass(frozen=True)
class Metric:
    """A declared metric: how it is computed for one case, and how its figure is to be read."""

    name: str
    compute: Callable[[Judged, int], float | None]
    """None where the metric is not defined for the case: it then contributes no key, never a 0."""
    source: str
    version: int = 1
    at_k: bool = True
    """False where the figure has no cut-off: its key is the bare name."""
    at_candidates: bool = False
    """True where the figure is also computed at depth `retrieval.candidates`."""
    higher_is_better: bool = True
    low: float = 0.0
    high: float = 1.0
    judges_gold: bool = True
    """True where the figure says whether gold was found; a gate without one such figure judges nothing."""
    monotone: bool = True
    """True where moving a relevant card up can never worsen the figure."""
    unit: str = "share"
    """What a figure of 1 is: a share, a number of cards, milliseconds."""
    stored: bool = True
    """False where the figure holds the run against the baseline itself: it stands in none, and has no tolerance."""

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""
        return first_line(self.compute)

    def key(self, k: int) -> str:
        """The name a figure carries everywhere: `ndcg@10` in settings, columns, JSON and reports."""
        return f"{self.name}@{k}" if self.at_k else self.name


@dataclass(frozen=True)
class Measured:
    """One figure of a whole run."""

    lane: str
    value: float
    n: int


@dataclass(frozen=True)
class Aggregate:
    """A declared figure of a whole run, where a mean over cases would mean nothing: an area under a curve, a percentile."""

    name: str
    measure: Callable[[Run, Mapping[str, bool]], Iterator[Measured]]
    """`f(run, has_gold)`; has_gold by case. Yields nothing where it cannot be measured."""
    source: str
    version: int = 1
    higher_is_better: bool = True
    low: float = 0.0
    high: float = 1.0
    unit: str = "share"
    at_k: bool = False
    judges_gold: bool = False
    stored: bool = False

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""
        return first_line(self.measure)

    def key(self, k: int) -> str:
        """The figure's name."""
        return self.name


class Search(Protocol):
    """Ask an index a batch of questions: one `Ranked` per question, in their order."""

    def __call__(self, questions: Sequence[Question], k: int) -> list[Ranked]:
        """Answer each question with at least k cards where so many are eligible."""


@dataclass(frozen=True)
class Retriever:
    """A declared retrieval method."""

    name: str
    connect: Callable[..., Search]
    """`connect(index, suite) -> Search`; the search is used within one run."""
    lanes: tuple[str, ...] = ()
    """Methods whose rankings it fuses; empty where it ranks by itself."""
    short_list_is_legal: bool = False
    """True where fewer than k cards is an honest answer (words that no card has)."""
    reference: str = ""
    """The method that answers the same over the same vectors without an approximate index."""
    fuse: Callable[..., list[tuple[str, float]]] | None = None
    """`fuse(lanes, suite)` for a method with lanes: their rankings made into one."""


@dataclass(frozen=True)
class Check:
    """A declared rule of the gate: looks at the exam, says nothing or one sentence for each thing it blocks."""

    name: str
    look: Callable[[Exam], Any]
    level: str
    """`critical`, `supporting` or `advisory`; `gated` checks take it from the suite's [gates]."""

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""
        return first_line(self.look)


METRICS: Registry[Metric] = Registry("metric", "kbgate.tasks.metrics")
AGGREGATES: Registry[Aggregate] = Registry("aggregate", "kbgate.tasks.metrics")
RETRIEVERS: Registry[Retriever] = Registry("retrieval method", "kbgate.tasks.retrieval")
CHUNKERS: Registry[Callable[[str, int, int], list[tuple[int, int]]]] = Registry(
    "chunking method", "kbgate.tasks.index.chunking"
)
CHECKS: Registry[Check] = Registry("check", "kbgate.tasks.gate")


def metric(name: str, *, source: str, **declared: Any) -> Callable[[Callable[[Judged, int], float | None]], Metric]:
    """Declare a metric: `@metric("recall", source="...") def recall(case, k)`."""

    def declare(compute: Callable[[Judged, int], float | None]) -> Metric:
        part = Metric(name, compute, source, **declared)
        METRICS.add(name, part)
        return part

    return declare


def aggregate(name: str, *, source: str, **declared: Any) -> Callable[[Callable[..., Iterator[Measured]]], Aggregate]:
    """Declare a figure of a whole run: `@aggregate("auroc", source="...") def auroc(run, has_gold)`."""

    def declare(measure: Callable[..., Iterator[Measured]]) -> Aggregate:
        part = Aggregate(name, measure, source, **declared)
        AGGREGATES.add(name, part)
        return part

    return declare


def retriever(name: str, **declared: Any) -> Callable[[Callable[..., Search]], Callable[..., Search]]:
    """Declare a retrieval method: `@retriever("bm25") def bm25(index, suite)` returns its search."""

    def declare(connect: Callable[..., Search]) -> Callable[..., Search]:
        RETRIEVERS.add(name, Retriever(name, connect, **declared))
        return connect

    return declare


def chunker(name: str) -> Callable[[T], T]:
    """Declare a chunking method: `f(text, size, overlap)` returns character spans (start, end), end exclusive."""

    def declare(split: T) -> T:
        CHUNKERS.add(name, split)  # type: ignore[arg-type]
        return split

    return declare


def check(name: str, *, level: str) -> Callable[[Look], Look]:
    """Declare a gate check: `f(exam)` returns the `Reason`s that speak against the index, or nothing."""

    def declare(look: Look) -> Look:
        CHECKS.add(name, Check(name, look, level))
        return look

    return declare


def cuts_of(part: Metric, suite: Suite) -> list[int]:
    """The cut-offs a metric is computed at in a suite; one of them, unused, for a metric that has none."""
    if not part.at_k:
        return [suite.top_k]
    return sorted({*suite.cuts, *([suite.retrieval.candidates] if part.at_candidates else [])})


def figure_keys(suite: Suite) -> list[str]:
    """Every figure a run of the suite can carry, in the order reports print them."""
    return [part.key(k) for part in METRICS.values() for k in cuts_of(part, suite)]


def metric_of(key: str) -> tuple[Metric | Aggregate, int | None]:
    """Read `ndcg@10` back: the metric and its cut-off (None for metrics without one)."""
    name, _, cut = key.partition("@")
    return AGGREGATES[name] if name in AGGREGATES else METRICS[name], int(cut) if cut else None
