"""Nights that are simulated: how often a verdict blocks although nothing changed, and how small a drop it can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kbgate.tasks.comparison.figures import labels_of
from kbgate.tasks.comparison.power import figures_with_limits, smallest_shown, thresholds
from kbgate.tasks.comparison.statistics import SEED
from kbgate.tasks.domain import Cases
from kbgate.tasks.metrics import figure_of, part_of
from kbgate.tasks.results import Scores
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import DIGITS, EPSILON, Figure, Floats, LaneScores, Mask

NIGHTS = 10_000
"""Simulated nights behind a rate: its standard error is at most half a point."""
RARE, SELDOM = 0.001, 0.01
"""A flip of one case in a thousand, told where none was seen; nights that a proposed ceiling may block for nothing."""
CEILINGS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2)
_FEWEST_NIGHTS, _MOST_VALUES = 200, 5_000_000
"""Nights are fewer where so many times so many cases would not fit the memory of a small machine."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One figure of a run, over the cases that have it, by case."""

    cases: tuple[str, ...]
    values: Floats

    @classmethod
    def of(cls, scores: LaneScores, figure: Figure) -> Column:
        """A figure of a lane."""
        by_case = sorted(scores[figure].items())
        return cls(tuple(case for case, _ in by_case), np.array([value for _, value in by_case], dtype=float))

    def as_in(self, other: Column) -> Floats:
        """The values of another column's cases; NaN where a case has none here."""
        values = dict(zip(self.cases, self.values.tolist(), strict=True))
        return np.array([values.get(case, np.nan) for case in other.cases], dtype=float)


def critical_tolerances(suite: Suite) -> dict[Figure, float]:
    """The tolerances that block, by the figure they are written for."""
    gates = suite.gates.items()
    return {
        figure_of(name, suite): gate.tolerance
        for name, gate in gates
        if gate.tolerance is not None and gate.level == "critical"
    }


def false_alarms(
    suite: Suite,
    scores: LaneScores,
    deltas: Mapping[Figure, Floats],
    deviation: float | None,
    canaries: frozenset[str] = frozenset(),
) -> dict[str, float]:
    """Share of nights blocked although nothing changed, by check and by any of them.

    Each night every case scores as it did, moved by one of the A/A `deltas` of that figure and by normal noise of
    `deviation`, kept inside the metric's range; the limits are those the gate holds for the rule `point`.
    `canaries`: the cases that may never fail. Noise has no ranks: a case that drops counts as lost, never as slipped.
    """
    draw, count = np.random.default_rng(SEED), int(scores.defined.any(axis=1).sum())
    nights = NIGHTS if count * NIGHTS < _MOST_VALUES else max(_FEWEST_NIGHTS, _MOST_VALUES // count)
    contract, gated = Figure("contract", suite.top_k), critical_tolerances(suite)
    blocked: dict[str, Mask] = {}
    for figure in dict.fromkeys([contract, *gated]):
        column = Column.of(scores, figure)
        if not column.cases and figure != contract:
            continue
        moved = _simulated(column, figure, deltas.get(figure, np.zeros(1)), deviation, nights, draw)
        worse = (column.values.mean() - moved.mean(axis=1)) * (1 if part_of(figure).higher_is_better else -1)
        if figure in gated:
            blocked[str(figure)] = worse > gated[figure] + EPSILON
        if figure == contract:
            blocked |= _case_checks(suite, column, moved, canaries)
    any_of_them = np.any(list(blocked.values()), axis=0) if blocked else np.zeros(nights, bool)
    return {name: float(mask.mean()) for name, mask in {**blocked, "any": any_of_them}.items()}


def _simulated(
    column: Column, figure: Figure, deltas: Floats, deviation: float | None, nights: int, draw: np.random.Generator
) -> Floats:
    """A figure's values in so many nights: nights x cases."""
    moved = column.values + draw.choice(deltas, (nights, len(column.values)))
    if deviation:
        moved = moved + draw.normal(0, deviation, moved.shape)
    part = part_of(figure)
    rounded: Floats = np.round(np.clip(moved, part.low, part.high), DIGITS)
    return rounded


def _case_checks(suite: Suite, column: Column, moved: Floats, canaries: frozenset[str]) -> dict[str, Mask]:
    """Nights in which the checks of single cases block."""
    checks: dict[str, Mask] = {}
    gate, mark = suite.gates["newly_failing"], suite.pass_mark - EPSILON
    if gate.level == "critical" and gate.ceiling is not None:
        failing = ((column.values >= mark) & (moved < mark)).sum(axis=1)
        checks["newly_failing"] = failing / len(column.values) > gate.ceiling + EPSILON
    birds = np.array([case in canaries for case in column.cases], dtype=bool)
    if birds.any():
        checks["canaries"] = np.any(moved[:, birds] < mark, axis=1)
    return checks


def detectable(suite: Suite, cases: Cases, scores: Scores, cards: int) -> dict[str, float]:
    """By critical line, and by any of them: the smallest share of questions whose loss blocks in 80 % of such golden sets.

    `scores`: what is lost, of these cases; `cards`: in the knowledge base.
    """
    table = scores.of(suite.retrieval.method)
    values = {figure: table[figure] for figure in figures_with_limits(suite)}
    parts = {name: labels_of(case, scores.placements.get(name)) for name, case in cases.items()}
    lines = thresholds(suite, cases, values, parts, cards)
    by_name = {line.name: [other for other in lines if other.name == line.name] for line in lines}
    return {**{name: smallest_shown(of_name) for name, of_name in by_name.items()}, "any": smallest_shown(lines)}


def blocked_by_flips(rate: float, cases: int, ceiling: float) -> float:
    """Share of nights that `newly_failing` blocks where each case fails by chance at this rate."""
    from scipy.special import bdtrc

    return float(bdtrc(np.floor(ceiling * cases + EPSILON), cases, rate))


def flips_told(flips: int, cases: int, repeats: int) -> str:
    """What cases that changed sides mean for the ceiling of `newly_failing`, in a sentence."""
    seen = f"{flips} of {cases} cases changed sides in {repeats} more examinations"
    rate = flips / (cases * repeats) if flips else RARE
    blocks, ceiling = blocked_by_flips(rate, cases, 0.0), ceiling_for(rate, cases)
    if not flips:
        night = f"if a night flips 1 of {round(1 / RARE):,}, it blocks {100 * blocks:.0f} % of nights"
        return f"{seen}: keep newly_failing at ceiling = 0; {night}: ceiling = {ceiling:g}"
    return f"{seen}: newly_failing at ceiling = 0 blocks {100 * blocks:.0f} % of nights for nothing: ceiling = {ceiling:g}"


def ceiling_for(rate: float, cases: int) -> float:
    """The smallest usual ceiling under which flips at this rate block one night in a hundred at most."""
    return next((ceiling for ceiling in CEILINGS if blocked_by_flips(rate, cases, ceiling) <= SELDOM), 1.0)
