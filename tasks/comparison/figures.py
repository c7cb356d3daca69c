"""The figures of a run beside its baseline: one row per figure and part of the cases, with interval, p and what would show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from kbgate.tasks.comparison.statistics import (
    Clustered,
    Floats,
    bootstrap,
    by_cluster,
    effective_n,
    paired_shares,
    sign_flip,
    smallest_visible_fall,
    wilson,
)
from kbgate.tasks.domain import Baseline, Run, Scores
from kbgate.tasks.registry import AGGREGATES, Aggregate, Metric, figure_keys, metric_of
from kbgate.tasks.settings import EPSILON, Suite
from kbgate.tasks.tables import rows_of

DIGITS = 6


def method_figures(
    suite: Suite,
    run: Run,
    scores: Scores,
    asked: pd.DataFrame,
    now: Mapping[str, Mapping[str, float]],
    then: Mapping[str, Mapping[str, Any]],
    population: set[str],
) -> Iterator[tuple[Any, ...]]:
    """The method's figures, over all cases and over each slice."""
    keys = figure_keys(suite)
    cases = asked[asked["id"].isin(population)].sort_values("id")
    ids = cases["id"].tolist()
    current = _table(ids, keys, now)
    before = _table(ids, keys, {case: row["scores"] for case, row in then.items()})
    anchored = _table(ids, keys, {case: row["anchor"] or {} for case, row in then.items()})
    for place, key in enumerate(keys):
        _lose_nothing(metric_of(key)[0], current[:, place], before[:, place])
    clusters = cases["cluster"].to_numpy()
    at_the_cut = _told_by_slice(suite, keys)
    known = asked[asked["id"].isin(set(then) | set(ids))].sort_values("id")
    for name, inside in _slices(known, scores.placements, {case: place for place, case in enumerate(ids)}):
        columns = at_the_cut if name else list(range(len(keys)))
        told = [keys[place] for place in columns]
        block = np.ix_(inside, np.array(columns, dtype=int))
        rows = _paired(suite, told, current[block], before[block], anchored[block], clusters[inside])
        for key, row in zip(told, rows, strict=True):
            yield (run.method, name, key, *row)
    has_gold = {case: bool(grades) for case, grades in zip(asked["id"], asked["grades"], strict=True)}
    for part in AGGREGATES.values():
        for found in part.measure(run, has_gold):
            nothing = [np.nan] * 4
            yield (found.lane, "", part.name, np.nan, found.value, np.nan, *nothing, found.n, np.nan, *nothing)


def _told_by_slice(suite: Suite, keys: list[str]) -> list[int]:
    """Places of the figures a slice has: those at the verdict's k, without a cut-off, or named by a [[slice]] or a gate."""
    asked = {*(part.metric for part in suite.slices), *suite.gates}
    return [place for place, key in enumerate(keys) if key in asked or metric_of(key)[1] in (None, suite.top_k)]


def _table(ids: list[str], keys: list[str], values: Mapping[str, Mapping[str, float]]) -> Floats:
    """Cases x figures; NaN where a case has no such figure."""
    return np.array([[values.get(case, {}).get(key, np.nan) for key in keys] for case in ids], dtype=float).reshape(
        len(ids), len(keys)
    )


def _lose_nothing(part: Metric | Aggregate, current: Floats, before: Floats) -> None:
    """A figure a case had and has no longer counts as the worst: a loss must not leave the denominator.

    Where the whole run lacks what some cases of the baseline have, only these cases are compared.
    """
    worst = part.low if part.higher_is_better else part.high
    if part.judges_gold and np.isfinite(worst):
        current[np.isnan(current) & ~np.isnan(before)] = worst
    if part.stored and not np.isnan(before).all():
        current[np.isnan(before)] = np.nan


def _slices(
    cases: pd.DataFrame, placements: pd.DataFrame, places: Mapping[str, int]
) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """All compared cases, and every part of the asked ones that has more than one value, as places in the table.

    A part whose cases were all edited has none: it is a part that was not measured, and must not go unsaid.
    """
    yield "", np.arange(len(places))
    of_gold = {row["case"]: row for row in rows_of(placements[["case", "domains", "tiers"]])}
    filtered = [f is not None or e is not None for f, e in zip(cases["filter"], cases["entitled"], strict=True)]
    labels: dict[str, list[list[str]]] = {
        **{by: [[value or "not said"] for value in cases[by]] for by in ("kind", "language", "topic")},
        "domain": [list(of_gold[case]["domains"]) if case in of_gold else [] for case in cases["id"]],
        "tier": [list(of_gold[case]["tiers"]) if case in of_gold else [] for case in cases["id"]],
        "filtered": [["yes" if value else "no"] for value in filtered],
    }
    for by, of_cases in labels.items():
        values = sorted({value for of_case in of_cases for value in of_case})
        if len(values) > 1:
            for value in values:
                named = zip(cases["id"], of_cases, strict=True)
                inside = [places[case] for case, of_case in named if value in of_case and case in places]
                yield f"{by}={value}", np.array(inside, dtype=int)


def _paired(
    suite: Suite, keys: list[str], current: Floats, before: Floats, anchored: Floats, clusters: np.ndarray[Any, Any]
) -> list[tuple[float, ...]]:
    """For each figure what stands behind its name in `FIGURE_COLUMNS`, over the same cases."""
    parts = [metric_of(key)[0] for key in keys]
    better = np.array([1.0 if part.higher_is_better else -1.0 for part in parts])
    compared = np.asarray(~np.isnan(before).all(axis=0)) if len(before) else np.zeros(len(keys), bool)
    values = np.where(compared, current - before, current)
    # What is as it was: a whole span off is the worst that can happen to a case.
    spans = np.array([part.high - part.low if np.isfinite(part.high) else 1.0 for part in parts])
    table = by_cluster(values, clusters)
    gains = Clustered(table.sums * better, table.sizes)
    low, high = bootstrap(table, spans)
    p = sign_flip(gains, np.array([_tolerance(suite, key) for key in keys]))
    visible, independent = smallest_visible_fall(gains), effective_n(table)
    rows = []
    for place in range(len(parts)):
        defined = ~np.isnan(values[:, place])
        now, n = current[defined, place], int(defined.sum())
        if not n:
            rows.append((*[np.nan] * 7, 0, 0, *[np.nan] * 4))
            continue
        interval = (float(low[place]), float(high[place]))
        was = before[defined, place] if compared[place] else np.array([])
        if set(now) <= {0.0, 1.0} and set(was) <= {0.0, 1.0}:
            share = paired_shares(was, now, independent[place]) if compared[place] else None
            interval = share or wilson(float(now.mean()), independent[place])
        held = (round(x, DIGITS) for x in interval)
        if not compared[place]:
            rows.append(
                (np.nan, now.mean(), np.nan, *held, np.nan, np.nan, n, int(table.clusters[place]), *[np.nan] * 3, np.nan)
            )
            continue
        change = (now - was) * better[place]
        wins, losses = int((change > EPSILON).sum()), int((change < -EPSILON).sum())
        since = current[:, place] - anchored[:, place]
        fallen = float(since[~np.isnan(since)].mean()) if not np.isnan(since).all() else np.nan
        told = (float(p[place]), round(float(visible[place]), DIGITS))
        ties = n - wins - losses
        rows.append(
            (
                was.mean(),
                now.mean(),
                now.mean() - was.mean(),
                *held,
                *told,
                n,
                int(table.clusters[place]),
                wins,
                ties,
                losses,
                fallen,
            )
        )
    return rows


def _tolerance(suite: Suite, key: str) -> float:
    """What [gates] lets a figure fall by; 0 where it says nothing."""
    part, cut = metric_of(key)
    names = [key, *([part.name] if cut in (None, suite.top_k) else [])]
    return next((suite.gates[name].tolerance or 0.0 for name in names if name in suite.gates), 0.0)


def lane_figures(run: Run, scores: Scores, baseline: Baseline | None) -> Iterator[tuple[Any, ...]]:
    """The other lanes' figures over all cases asked, beside the baseline's own means where these are of the same cases."""
    others = scores.figures[scores.figures["lane"] != run.method]
    for (lane, key), values in others.groupby(["lane", "metric"], sort=False)["value"]:
        was = baseline.summary["lanes"].get(lane, {}).get(key) if baseline else None
        before = was["mean"] if was else np.nan
        row = (before, values.mean(), values.mean() - before, *[np.nan] * 4, len(values), *[np.nan] * 5)
        yield (lane, "", key, *row)
