"""The figures of a run beside its baseline: one row per figure and part of the cases, with interval, p and what would show."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbgate.tasks.comparison.scoring import means_of
from kbgate.tasks.comparison.statistics import (
    Clustered,
    by_cluster,
    clusters_of,
    interval_of_change,
    interval_of_mean,
    sign_flip,
    smallest_visible_drop,
)
from kbgate.tasks.domain import Baseline, Case, Cases
from kbgate.tasks.metrics import Part, figure_of, figures_of, part_of
from kbgate.tasks.results import Compared, Placement, Run, Scores
from kbgate.tasks.schema import BaselineCase
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import DIGITS, EPSILON, Figure, Floats, LaneScores, Mask

_SIGNS = {True: 1.0, False: -1.0, None: 0.0}
"""By which way is up; where neither is, nothing is won and nothing lost."""
NOT_SAID = "not said"
"""The slice of cases that leave a label empty."""


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """The same cases (rows) and figures (columns) now and at the baseline; NaN where a case has none."""

    figures: tuple[Figure, ...]
    clusters: NDArray[np.str_]
    now: Floats
    before: Floats

    def block(self, inside: NDArray[np.intp], columns: Sequence[int]) -> Paired:
        """Some of the cases and figures."""
        block = np.ix_(inside, np.array(columns, dtype=int))
        figures = tuple(self.figures[column] for column in columns)
        return Paired(figures, self.clusters[inside], self.now[block], self.before[block])


def method_figures(
    suite: Suite,
    run: Run,
    scores: Scores,
    asked: Cases,
    then: Mapping[str, BaselineCase],
    population: set[str],
    gone: Sequence[BaselineCase] = (),
) -> Iterator[Compared]:
    """The method's figures, over all cases and over each slice; `gone`: rows of cases that are asked no more."""
    ids = sorted(name for name in asked if name in population)
    table = _paired_table(suite, scores.of(run.method), asked, then, ids)
    at_the_cut = _columns_of_slices(suite, table.figures)
    known = {
        name: accepted_labels(then[name]) if name in then else labels_of(asked[name], scores.placements.get(name))
        for name in sorted(asked)
        if name in population or name in then
    }
    known |= {row.id: accepted_labels(row) for row in gone}
    for name, inside in _slices(known, {case: place for place, case in enumerate(ids)}):
        columns = at_the_cut if name else list(range(len(table.figures)))
        yield from _compared(suite, run.method, name, table.block(inside, columns))


def _paired_table(suite: Suite, scores: LaneScores, asked: Cases, then: Mapping[str, BaselineCase], ids: list[str]) -> Paired:
    figures = figures_of(suite)
    rows = {case: place for place, case in enumerate(scores.cases)}
    now = np.full((len(ids), len(figures)), np.nan)
    for number, case in enumerate(ids):
        if case in rows:
            now[number] = scores.values[rows[case]]
    now[~np.isfinite(now)] = np.nan  # the check `finite` refuses the run; until then it was not measured
    keys = [str(figure) for figure in figures]
    before = _table(ids, keys, {case: row.scores for case, row in then.items()})
    for place, figure in enumerate(figures):
        _lose_nothing(part_of(figure), now[:, place], before[:, place])
    # As the baseline has them: cases put into one cluster since would hide a drop behind a wider interval.
    named = {case: then[case].cluster if case in then else asked[case].cluster for case in ids}
    joined = clusters_of(named, {case: asked[case].query for case in ids})
    clusters = np.array([joined[case] for case in ids], dtype=str)
    return Paired(figures, clusters, now, before)


def _columns_of_slices(suite: Suite, figures: Sequence[Figure]) -> list[int]:
    """Places of the figures a slice has: those at the verdict's k, without a cut-off, or named by a [[slice]] or a gate."""
    asked = {*(part.metric for part in suite.slices), *suite.gates}
    return [place for place, figure in enumerate(figures) if str(figure) in asked or figure.k in (None, suite.top_k)]


def _table(ids: list[str], keys: list[str], values: Mapping[str, Mapping[str, float]]) -> Floats:
    """Cases x figures; NaN where a case has no such figure."""
    rows = [[values.get(case, {}).get(key, np.nan) for key in keys] for case in ids]
    return np.array(rows, dtype=float).reshape(len(ids), len(keys))


def _lose_nothing(part: Part, now: Floats, before: Floats) -> None:
    """A figure a case had and has no longer counts as the worst: a loss must not leave the denominator.

    Where the whole run lacks what some cases of the baseline have, only these cases are compared.
    """
    worst = part.low if part.higher_is_better else part.high
    if part.judges_gold and np.isfinite(worst):
        now[np.isnan(now) & ~np.isnan(before)] = worst
    if part.stored and not np.isnan(before).all():
        now[np.isnan(before)] = np.nan


def _slices(
    labels: Mapping[str, Mapping[str, tuple[str, ...]]], places: Mapping[str, int]
) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """All compared cases, and every part of the known ones that has more than one value, as places in the table.

    A part whose cases were all edited or removed has none: it is a part that was not measured, and must not go unsaid.
    """
    yield "", np.arange(len(places))
    for by in next(iter(labels.values()), {}):
        values = sorted({value for of_case in labels.values() for value in of_case[by]})
        if len(values) > 1:
            for value in values:
                inside = [places[case] for case, of_case in labels.items() if value in of_case[by] and case in places]
                yield f"{by}={value}", np.array(inside, dtype=np.intp)


def labels_of(case: Case, placement: Placement | None) -> dict[str, tuple[str, ...]]:
    """The slices a case stands in, by what they are cut by."""
    filtered = case.filter is not None or case.entitled is not None
    return {
        "kind": (case.kind or NOT_SAID,),
        "language": (case.language or NOT_SAID,),
        "topic": (case.topic or NOT_SAID,),
        "domain": placement.domains if placement else (),
        "tier": placement.tiers if placement else (),
        "filtered": ("yes" if filtered else "no",),
        "attack": (case.attack or NOT_SAID,),
        "intent": (case.intent or NOT_SAID,),
    }


def accepted_labels(row: BaselineCase) -> dict[str, tuple[str, ...]]:
    """The slices a case stood in when it was accepted: moved to a larger one since, it would hide what its own one lost."""
    filtered = row.asked.filter is not None or row.asked.entitled is not None
    return {
        "kind": (row.asked.kind or NOT_SAID,),
        "language": (row.asked.language or NOT_SAID,),
        "topic": (row.topic or NOT_SAID,),
        "domain": tuple(row.domains),
        "tier": tuple(row.tiers),
        "filtered": ("yes" if filtered else "no",),
        "attack": (row.attack or NOT_SAID,),
        "intent": (row.intent or NOT_SAID,),
    }


def _compared(suite: Suite, lane: str, name: str, table: Paired) -> Iterator[Compared]:
    """Each figure over the same cases: means, interval, p, what would have shown."""
    parts = [part_of(figure) for figure in table.figures]
    better = np.array([_SIGNS[part.higher_is_better] for part in parts])
    paired = np.asarray(~np.isnan(table.before).all(axis=0)) if len(table.before) else np.zeros(len(parts), bool)
    values = np.where(paired, table.now - table.before, table.now)
    clustered = by_cluster(values, table.clusters)
    low, high = _intervals(parts, clustered, table.before, paired)
    gains = Clustered(clustered.sums * better, clustered.sizes)
    p = sign_flip(gains, np.array([_tolerance(suite, figure) for figure in table.figures]))
    visible = smallest_visible_drop(gains)
    for place, figure in enumerate(table.figures):
        defined = ~np.isnan(values[:, place])
        n = int(defined.sum())
        if not n:
            yield Compared(lane, figure, name, clusters=0)
            continue
        now, was = table.now[defined, place], table.before[defined, place] if paired[place] else np.array([])
        row = Compared(
            lane, figure, name, current=float(now.mean()), low=round(float(low[place]), DIGITS),
            high=round(float(high[place]), DIGITS), n=n, clusters=int(clustered.clusters[place]),
        )  # fmt: skip
        if paired[place]:
            row = _beside_baseline(row, now, was, float(better[place]))
            if better[place]:
                row = dataclasses.replace(row, p=float(p[place]), visible=round(float(visible[place]), DIGITS))
        yield row


def _intervals(parts: Sequence[Part], table: Clustered, before: Floats, paired: Mask) -> tuple[Floats, Floats]:
    """Of the change where there is one, of the figure where there is none; what it then is stays inside its range."""
    lows, highs = np.array([part.low for part in parts]), np.array([part.high for part in parts])
    alone = interval_of_mean(table, lows, highs)
    change = interval_of_change(table, np.where(np.isfinite(highs), highs - lows, 1.0))
    counts = np.maximum((~np.isnan(before)).sum(axis=0), 1) if len(before) else np.ones(len(parts))
    was = np.nansum(before, axis=0) / counts if len(before) else np.zeros(len(parts))
    low = np.where(paired, np.maximum(change[0], lows - was), alone[0])
    return low, np.where(paired, np.minimum(change[1], highs - was), alone[1])


def _beside_baseline(row: Compared, now: Floats, was: Floats, better: float) -> Compared:
    """A figure with what the same cases had."""
    row = dataclasses.replace(row, baseline=float(was.mean()), delta=float(now.mean() - was.mean()))
    if not better:
        return row
    change = (now - was) * better
    wins, losses = int((change > EPSILON).sum()), int((change < -EPSILON).sum())
    return dataclasses.replace(row, wins=wins, ties=row.n - wins - losses, losses=losses)


def _tolerance(suite: Suite, figure: Figure) -> float:
    """What [gates] lets a figure drop by; 0 where it says nothing."""
    gates = ((name, gate) for name, gate in suite.gates.items() if name.partition("@")[0] == figure.metric)
    return next((gate.tolerance or 0.0 for name, gate in gates if figure_of(name, suite) == figure), 0.0)


def lane_figures(run: Run, scores: Scores, baseline: Baseline | None) -> Iterator[Compared]:
    """The other lanes' figures over all cases asked, beside the baseline's own means where these are of the same cases."""
    for lane, table in scores.lanes.items():
        accepted = baseline.summary.lanes.get(lane, {}) if baseline else {}
        for figure, (mean, n) in means_of(table).items() if lane != run.method else ():
            was = accepted.get(str(figure))
            delta = mean - was.mean if was else None
            yield Compared(lane, figure, baseline=was.mean if was else None, current=mean, delta=delta, n=n)
