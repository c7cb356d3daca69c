"""How much a verdict of this suite is worth: its noise, its false alarms, and the falls it can see.

The same knowledge base is examined again and again (A/A): its rows inserted in another order, some of them embedded anew in
another batch size. Whatever differs is noise. Nothing is written.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kbgate.tasks.comparison.scoring import score
from kbgate.tasks.comparison.statistics import POWER, SEED, Floats, bootstrap, by_cluster, smallest_visible_fall
from kbgate.tasks.domain import Index, Inputs, Material, Run, Scores
from kbgate.tasks.index.embedding import embed_rows, time_queries
from kbgate.tasks.index.store import ingest, temporary_store
from kbgate.tasks.index.vectors import Vectors
from kbgate.tasks.metrics.latency import P95_FROM, P99_FROM
from kbgate.tasks.registry import METRICS, metric_of
from kbgate.tasks.retrieval.run import retrieve
from kbgate.tasks.settings import EPSILON, Suite

SAMPLED = 200
"""Rows embedded anew in each repetition."""
NIGHTS = 10_000
"""Simulated nights behind a rate: its standard error is at most half a point."""
TIMED = 200
"""Questions embedded one by one for the clock."""
DEVIATIONS = (0.01, 0.05, 0.1)
MARGIN = 0.02
"""How far below the lower bound of the observed mean a floor is proposed."""


@dataclass(frozen=True)
class Calibration:
    """What a suite's figures are worth."""

    repeats: int
    band: Mapping[str, float]
    """By figure: the largest |difference| of its mean between two examinations of the same thing."""
    flips: int
    """Cases that passed in one repetition and failed in another, over all repetitions."""
    false_alarms: Mapping[str, Mapping[str, float]]
    """By standard deviation of per-case noise: share of nights that each critical check blocks, and any of them."""
    floors: Mapping[str, float]
    tolerances: Mapping[str, float]
    noise_ceiling: float | None
    """95th percentile of noise over the cases whose contract is 1; None where there is none."""
    detectable: Mapping[str, Mapping[str, float]]
    """By set (full, fast) and check: the smallest fall that blocks in 80 % of such golden sets."""
    embedding_ms: Mapping[str, float]
    """Percentiles of the time one warm question takes to embed, and n: the stage no run times, its vectors being cached."""
    agreement: tuple[int, int]
    """Of so many fast runs that a full run judged too, how many ended on the same side."""


def calibrate(
    inputs: Inputs, material: Material, vectors: Vectors, fast: pd.DataFrame, day: dt.date, lines: Iterable[Mapping[str, Any]],
    repeats: int,
) -> Calibration:  # fmt: skip
    """Examine the same thing `repeats` times more and say what its figures are worth; `lines`: the suite's history."""
    suite, cases = inputs.suite, inputs.golden.cases
    draw = np.random.default_rng(SEED)
    first, *others = [_sit(inputs, material, vectors, day, draw if n else None) for n in range(repeats + 1)]
    method, mark = suite.retrieval.method, suite.pass_mark - EPSILON
    tables = [_table(scores, method) for scores in (first, *others)]
    band = {
        key: float(max(abs(other[key].mean() - tables[0][key].mean()) for other in tables[1:]))
        for key in tables[0].columns
        if metric_of(key)[0].stored
    }
    contract = METRICS["contract"].key(suite.top_k)
    base = tables[0][contract].dropna()
    flips = sum(int(((other[contract].reindex(base.index) >= mark) != (base >= mark)).sum()) for other in tables[1:])
    clusters = dict(zip(cases["id"], cases["cluster"], strict=True))
    gated, canaries = _critical_tolerances(suite), frozenset(cases.loc[cases["canary"].astype(bool), "id"])
    healthy = tables[0][tables[0][contract] >= 1 - EPSILON]
    noise = healthy[f"noise@{suite.top_k}"].dropna() if f"noise@{suite.top_k}" in healthy else pd.Series(dtype=float)
    own = {key: tables[0][key].dropna() for key in gated if key in tables[0]}
    deltas = {
        key: np.concatenate([(other[key].reindex(values.index) - values).dropna().to_numpy() for other in tables[1:]])
        for key, values in {contract: base, **own}.items()
    }
    return Calibration(
        repeats,
        band,
        flips,
        {
            "observed" if sd is None else f"{sd:g}": false_alarms(suite, tables[0], deltas, sd, canaries)
            for sd in (None, *DEVIATIONS)
        },
        {
            key: round(_lower_bound(values, clusters) - MARGIN, 3)
            for key, values in own.items()
            if metric_of(key)[0].higher_is_better
        },
        {key: round(max(2 * band[key], 0.005), 3) for key in own},
        float(np.quantile(noise, 0.95)) if len(noise) else None,
        {
            name: detectable(suite, len({clusters[case] for case in base.index if case in ids}))
            for name, ids in (("full", set(cases["id"])), ("fast", set(fast["id"])))
        },
        embedding_times(suite, material, cases),
        agreement(lines),
    )


def _sit(inputs: Inputs, material: Material, vectors: Vectors, day: dt.date, draw: np.random.Generator | None) -> Scores:
    """One examination; with `draw`, of an index built in another order, some of its rows embedded anew."""
    suite, own = inputs.suite, material.vectors
    order = np.arange(len(material.rows))
    if draw is not None:
        order = draw.permutation(order)
        sampled = np.sort(draw.choice(order, min(SAMPLED, len(order)), replace=False))
        own = own.copy()
        own[sampled] = _embed_anew(suite, material, material.rows.iloc[sampled])
    with temporary_store("calibration") as store:
        rows = material.rows.iloc[order]
        ingest(suite, rows, material.members, own[order], store, "calibration")
        index = Index(material.rows, material.members, own, store, "calibration")
        run: Run = retrieve(suite, index, inputs.golden.cases, vectors, day, "full")
    return score(suite, inputs.kb, inputs.golden.cases, run)


def _embed_anew(suite: Suite, material: Material, rows: pd.DataFrame) -> Vectors:
    """Vectors of some rows in another batch size, without the cache."""
    import tempfile

    other = suite.model_copy(update={"embedding": suite.embedding.model_copy(update={"batch": suite.embedding.batch // 4 + 1})})
    with tempfile.TemporaryDirectory(prefix="kbgate-") as empty:
        return embed_rows(other, material.model, rows.reset_index(drop=True), Path(empty))


def _table(scores: Scores, method: str) -> pd.DataFrame:
    own = scores.figures[scores.figures["lane"] == method]
    return own.pivot(index="case", columns="metric", values="value").sort_index()


def _critical_tolerances(suite: Suite) -> dict[str, float]:
    found = {}
    for name, gate in suite.gates.items():
        if gate.tolerance is not None and gate.level == "critical":
            part, cut = metric_of(name)
            found[part.key(cut or suite.top_k)] = gate.tolerance
    return found


def false_alarms(
    suite: Suite,
    table: pd.DataFrame,
    deltas: Mapping[str, Floats],
    deviation: float | None,
    canaries: frozenset[str] = frozenset(),
) -> dict[str, float]:
    """Share of nights blocked although nothing changed, by check and by any of them.

    Each night every case scores as it did, moved by one of the A/A `deltas` of that figure and by normal noise of
    `deviation`, kept inside the metric's range; the limits are those the gate holds for the rule `point`.
    `canaries`: the cases that may never fail.
    """
    draw, checks = np.random.default_rng(SEED), {}
    contract = METRICS["contract"].key(suite.top_k)
    nights = NIGHTS if len(table) * NIGHTS < 5_000_000 else max(200, 5_000_000 // len(table))
    gated = _critical_tolerances(suite)
    for key in dict.fromkeys([contract, *(key for key in gated if key in table)]):
        values = table[key].dropna().to_numpy()
        moved = values + draw.choice(deltas.get(key, np.zeros(1)), (nights, len(values)))
        if deviation:
            moved = moved + draw.normal(0, deviation, moved.shape)
        part = metric_of(key)[0]
        moved = np.round(np.clip(moved, part.low, part.high), 6)
        worse = (values.mean() - moved.mean(axis=1)) * (1 if part.higher_is_better else -1)
        if key in gated:
            checks[key] = worse > gated[key] + EPSILON
        if key != contract:
            continue
        gate, mark = suite.gates["newly_failing"], suite.pass_mark - EPSILON
        if gate.level == "critical" and gate.ceiling is not None:
            fallen = ((values >= mark) & (moved < mark)).sum(axis=1)
            checks["newly_failing"] = fallen / len(values) > gate.ceiling + EPSILON
        birds = table[key].dropna().index.isin(canaries)
        if birds.any():
            checks["canaries"] = (moved[:, birds] < mark).any(axis=1)
    any_of = np.any(list(checks.values()), axis=0) if checks else np.zeros(nights, bool)
    return {**{name: float(blocked.mean()) for name, blocked in checks.items()}, "any": float(any_of.mean())}


def detectable(suite: Suite, clusters: int) -> dict[str, float]:
    """By check: the smallest share of questions that may lose their answer and still be seen in 80 % of such golden sets."""
    from scipy.special import betaincinv

    found = {}
    ceiling = suite.gates["newly_failing"].ceiling or 0.0
    limits = {"newly_failing": ceiling, **_critical_tolerances(suite)}
    for name, limit in limits.items():
        fewest = int(np.floor(limit * clusters + EPSILON)) + 1
        found[name] = float(betaincinv(fewest, clusters - fewest + 1, POWER)) if 0 < fewest <= clusters else 1.0
    still = by_cluster(np.zeros((clusters, 1)), np.arange(clusters))
    found["significant"] = float(smallest_visible_fall(still)[0]) if clusters else 1.0
    return found


def embedding_times(suite: Suite, material: Material, cases: pd.DataFrame) -> dict[str, float]:
    """p50, p95 and p99 in milliseconds of up to `TIMED` questions embedded one by one; what n is too small for is absent."""
    times = time_queries(suite, material.model, cases.head(TIMED))
    least = {50: 1, 95: P95_FROM, 99: P99_FROM}
    found = {f"p{share}": float(np.percentile(times, share)) for share, of in least.items() if len(times) >= of}
    return {**found, "n": len(times)}


def _lower_bound(values: pd.Series, clusters: Mapping[str, str]) -> float:
    table = by_cluster(values.to_numpy()[:, None], np.array([clusters[case] for case in values.index]))
    return float(bootstrap(table, np.ones(1))[0][0])


def agreement(lines: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Of the fast runs in a history whose very state a full run judged too: how many, and how many on the same side."""
    judged = [dict(line) for line in lines]
    full = {str(sorted(line["fingerprints"].items())): line["exit_code"] == 0 for line in judged if line["mode"] == "full"}
    fast = [(str(sorted(line["fingerprints"].items())), line["exit_code"] == 0) for line in judged if line["mode"] == "fast"]
    both = [(full[state], green) for state, green in fast if state in full]
    return len(both), sum(one == other for one, other in both)


def told(calibration: Calibration) -> dict[str, Any]:
    """A calibration as JSON values."""
    return dataclasses.asdict(calibration)


def lines_of(calibration: Calibration) -> list[str]:
    """A calibration as a person reads it."""
    moved = {key: band for key, band in calibration.band.items() if band > 0}
    lines = [
        f"noise of {calibration.repeats} more examinations of the same: "
        + (", ".join(f"{key} {band:.4f}" for key, band in sorted(moved.items())) or "none, every figure is the same")
        + f"; {calibration.flips} cases changed sides",
    ]
    for deviation, rates in calibration.false_alarms.items():
        about = "as observed" if deviation == "observed" else f"with per-case noise of sd {deviation}"
        lines.append(f"false alarms {about}: " + ", ".join(f"{name} {100 * rate:.1f} %" for name, rate in rates.items()))
    for name, falls in calibration.detectable.items():
        shown = ", ".join(f"{check} {100 * fall:.1f} points" for check, fall in falls.items())
        lines.append(f"smallest fall seen in 80 % of such golden sets, {name} set: {shown}")
    for key, tolerance in calibration.tolerances.items():
        floor = f"floor = {calibration.floors[key]:g}, " if key in calibration.floors else ""
        lines.append(f"proposed for {key}: {floor}tolerance = {tolerance:g}")
    if calibration.noise_ceiling is not None:
        lines.append(f"proposed noise ceiling (95 % of the healthy cases are below): {calibration.noise_ceiling:.2f}")
    times = dict(calibration.embedding_ms)
    n = times.pop("n")
    lines.append(f"one question takes to embed: {', '.join(f'{p} {ms:.1f} ms' for p, ms in times.items())} (n = {n})")
    judged, agreed = calibration.agreement
    lines.append(f"the fast set agreed with the full one in {agreed} of {judged} states both judged")
    return lines
