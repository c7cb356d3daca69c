"""What the gates in force would have seen: the smallest share of questions whose loss shows in four of five golden sets.

Every critical line is a threshold on what clusters lose: cases that fail beyond a ceiling, a mean beyond a tolerance or below
a floor, of all cases or of a part, one canary. A question that is lost is lost with its translations, whole, and beyond the
slack where there is a place beyond it. Whether the cause of a loss would be proven is not known before, so that [acceptance]
may see less than is said here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kbgate.tasks.comparison.statistics import POWER, SEED, Clustered, clusters_of, interval_of_change, smallest_visible_drop
from kbgate.tasks.domain import Cases
from kbgate.tasks.metrics import METRICS, Part, figure_at, figure_of, part_of
from kbgate.tasks.settings import GATED_COUNTS, Gate, Suite
from kbgate.tasks.tables import EPSILON, Figure, Floats

SETS, _FEWEST_SETS, _MOST_VALUES = 1000, 200, 4_000_000
"""Golden sets that are drawn, fewer where so many clusters each would not fit the memory of a small machine."""
FEW = 50
"""Cases with gold below which a suite is small: one more or less is two points and more."""
_MOST_CLUSTERS = 2**17
Values = Mapping[Figure, Mapping[str, float]]
"""By figure and case."""
Parts = Mapping[str, Mapping[str, tuple[str, ...]]]
"""By case and what a [[slice]] cuts by: the parts it stands in."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A line that speaks as soon as clusters together lose more than it allows."""

    name: str
    losses: Floats
    """By cluster: what goes with it."""
    allowed: float


def figures_with_limits(suite: Suite) -> set[Figure]:
    """The figures that a line of [gates], [[slice]] or [acceptance] may speak of, and the contract."""
    named = [*(name for name in suite.gates if name not in GATED_COUNTS), *(rule.metric for rule in suite.slices)]
    demanded = ("contract", "quality", "failing") if suite.acceptance else ("contract",)
    return {figure_of(name, suite) for name in named} | {figure_at(METRICS[name], suite.top_k) for name in demanded}


def thresholds(suite: Suite, cases: Cases, values: Values, parts: Parts, cards: int) -> list[Threshold]:
    """The critical lines of [gates], [[slice]] and [acceptance] that a lost answer of these cases could break; the canaries.

    `values`: as they were accepted; `cards`: in the knowledge base, beyond which no gold can fall.
    """
    contracts = values.get(figure_at(METRICS["contract"], suite.top_k), {})
    asked = {name: case for name, case in cases.items() if name in contracts}
    joined = clusters_of({name: case.cluster for name, case in asked.items()}, {n: case.query for n, case in asked.items()})
    places = {cluster: place for place, cluster in enumerate(sorted(set(joined.values())))}
    number = np.array([places[joined[name]] for name in asked], dtype=np.intp)

    def summed(by_case: Mapping[str, float]) -> Floats:
        return np.bincount(number, [by_case.get(name, 0.0) for name in asked], len(places)).astype(float)

    values = {figure: {case: of_case[case] for case in asked if case in of_case} for figure, of_case in values.items()}
    passing = {name: float(contracts[name] >= suite.pass_mark - EPSILON) for name in asked}
    found, gate = [], suite.gates["newly_failing"]
    if gate.level == "critical" and gate.ceiling is not None:
        only_slips = suite.top_k + (1 if gate.slack is None else gate.slack) >= cards
        allowed = max(gate.slips or 0, 1) if only_slips else gate.ceiling * len(asked)
        found.append(Threshold("newly_failing", summed(passing), allowed))
    for name, line in suite.gates.items():
        if name not in GATED_COUNTS and line.level == "critical":
            figure = figure_of(name, suite)
            limits = _limits(part_of(figure), line, values.get(figure, {}))
            found += [Threshold(str(figure), summed(losses), allowed) for losses, allowed in limits]
    for label, figure, line in _of_parts(suite, parts):
        of_part = {case: value for case, value in values.get(figure, {}).items() if label[1] in parts[case][label[0]]}
        limits = _limits(part_of(figure), line, of_part)
        found += [Threshold(f"{'='.join(label)} {figure}", summed(losses), allowed) for losses, allowed in limits]
    found += [Threshold("acceptance", summed(losses), allowed) for losses, allowed in _demands(suite, values, parts)]
    birds = {name: passing[name] for name, case in asked.items() if case.canary}
    return [*found, *([Threshold("canaries", summed(birds), 0.0)] if any(birds.values()) else [])]


def _limits(part: Part, gate: Gate, values: Mapping[str, float]) -> Iterator[tuple[Mapping[str, float], float]]:
    """What each case can lose of a figure, and how much all may, by each of the gate's limits."""
    worst, n = part.low if part.higher_is_better else part.high, len(values)
    if not part.judges_gold or not np.isfinite(worst) or n < gate.min_n:
        return
    losses, total = {case: abs(value - worst) for case, value in values.items()}, sum(values.values())
    if gate.tolerance is not None:
        yield losses, gate.tolerance * n
    if gate.floor is not None and part.higher_is_better:
        yield losses, total - gate.floor * n
    if gate.ceiling is not None and not part.higher_is_better:
        yield losses, gate.ceiling * n - total


def _of_parts(suite: Suite, parts: Parts) -> Iterator[tuple[tuple[str, str], Figure, Gate]]:
    """What each critical [[slice]] cuts by, each part of it, and its limit."""
    for rule in suite.slices:
        labels = {label for of_case in parts.values() for label in of_case[rule.by]}
        if rule.level == "critical" and len(labels) > 1:
            for label in sorted(labels):
                yield (rule.by, label), figure_of(rule.metric, suite), Gate(tolerance=rule.tolerance, min_n=rule.min_n)


def _demands(suite: Suite, values: Values, parts: Parts) -> Iterator[tuple[Mapping[str, float], float]]:
    """What each case can lose of the supply contract, and how much all may."""
    demands = suite.acceptance
    if demands is None or demands.level != "critical":
        return
    floor, ceiling = Gate(floor=demands.quality, min_n=1), Gate(ceiling=demands.failing_share, min_n=1)
    for metric, gate in (("quality", floor), ("failing", ceiling)):
        part = METRICS[metric]
        yield from _limits(part, gate, values.get(figure_at(part, suite.top_k), {}))
    failing = values.get(figure_at(METRICS["failing"], suite.top_k), {})
    yield {case: 1.0 - value for case, value in failing.items() if "gold" in parts[case]["tier"]}, 0.0


def smallness(cases: Cases) -> str:
    """That a suite is small, as a sentence; "" for one of 50 cases with gold or more."""
    n = sum(bool(case.grades) for case in cases.values())
    if not 0 < n < FEW:
        return ""
    return f"A small suite: {n} of at least {FEW} cases with gold; one of them is {100 / n:.1f} points."


def rules_that_never_pass(suite: Suite, cases: Cases) -> Iterator[str]:
    """Lines of [gates] that so few clusters could never satisfy, whatever is found: a sentence each."""
    with_gold = {name: case for name, case in cases.items() if case.grades}
    named = {name: case.cluster for name, case in with_gold.items()}
    clusters = len(set(clusters_of(named, {name: case.query for name, case in with_gold.items()}).values()))
    for name, gate in suite.gates.items():
        if gate.rule == "point" or gate.tolerance is None:
            continue
        needed = clusters_needed(gate.rule, gate.tolerance)
        if clusters < needed:
            needs = f"needs at least {needed:,} clusters for {gate.tolerance:g}" if needed < _MOST_CLUSTERS else "needs one"
            yield f"gates.{name}.rule = '{gate.rule}': can never pass: it {needs}, and these cases with gold make {clusters}"


def clusters_needed(rule: str, tolerance: float) -> int:
    """The fewest clusters of which, where nothing moved, the rule could say that nothing dropped beyond the tolerance."""

    def suffices(clusters: int) -> bool:
        still = Clustered(np.zeros((clusters, 1)), np.ones((clusters, 1)))
        if rule == "significant":
            return bool(smallest_visible_drop(still)[0] <= tolerance + EPSILON)
        return bool(interval_of_change(still, np.ones(1))[1][0] <= tolerance + EPSILON)

    low, high = 0, 1
    while high < _MOST_CLUSTERS and not suffices(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def smallest_shown(lines: Sequence[Threshold]) -> float:
    """The share of all questions that must lose their answer for one of these lines to speak in 80 % of such sets; 1 for never.

    Each cluster has a place in a queue; as the share grows they are lost in its order, and a set's line speaks from some
    share on. Of these shares the 80th percentile is told.
    """
    if not lines or not len(lines[0].losses):
        return 1.0
    clusters = len(lines[0].losses)
    sets = min(SETS, max(_FEWEST_SETS, _MOST_VALUES // clusters))
    drawn = np.random.default_rng(SEED).random((sets, clusters))
    order = np.argsort(drawn, axis=1)
    shares = np.concatenate([np.take_along_axis(drawn, order, axis=1), np.ones((sets, 1))], axis=1)
    first = np.full(sets, clusters)
    for line in lines:
        spoken = line.losses[order].cumsum(axis=1) > line.allowed + EPSILON
        first = np.minimum(first, np.where(spoken.any(axis=1), spoken.argmax(axis=1), clusters))
    return float(np.quantile(shares[np.arange(sets), first], POWER, method="higher"))
