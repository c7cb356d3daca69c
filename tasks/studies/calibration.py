"""How much a verdict of this suite is worth: its noise, its false alarms, and the falls it can see.

The same knowledge base is examined again and again (A/A): its rows inserted in another order, some of them embedded anew in
another batch size. Whatever differs is noise. Nothing is written.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from kbgate.tasks.comparison.scoring import score
from kbgate.tasks.comparison.statistics import SEED, by_cluster, clusters_of, interval_of_mean
from kbgate.tasks.domain import Cases, Index, Inputs, Material, Mode
from kbgate.tasks.index.embedding import embed_rows, time_queries
from kbgate.tasks.index.store import ingest, temporary_store
from kbgate.tasks.metrics import part_of
from kbgate.tasks.metrics.latency import P95_FROM, P99_FROM
from kbgate.tasks.results import Scores
from kbgate.tasks.retrieval.run import retrieve
from kbgate.tasks.runs.history import HistoryLine
from kbgate.tasks.settings import Suite
from kbgate.tasks.studies.nights import Column, critical_tolerances, detectable, false_alarms, flips_told
from kbgate.tasks.tables import EPSILON, Figure, Floats, LaneScores, Rows, Vectors

SAMPLED = 200
"""Rows embedded anew in each repetition."""
TIMED = 200
"""Questions embedded one by one for the clock."""
DEVIATIONS = (0.01, 0.05, 0.1)
MARGIN = 0.02
"""How far below the lower bound of the observed mean a floor is proposed."""
HEALTHY = 0.95
"""Share of the healthy cases whose noise is at or below the proposed ceiling."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a suite's figures are worth."""

    repeats: int
    cases: int
    """Cases that have a contract."""
    band: Mapping[str, float]
    """By figure: the largest |difference| of its mean between two examinations of the same thing."""
    flips: int
    """Cases that passed in one repetition and failed in another, over all repetitions."""
    false_alarms: Mapping[str, Mapping[str, float]]
    """By standard deviation of per-case noise: share of nights that each critical check blocks, and any of them."""
    floors: Mapping[str, float]
    tolerances: Mapping[str, float]
    noise_ceilings: Mapping[str, float]
    """By how many cards an answer needs: what the noise of 95 % of such cases does not exceed where all are found; empty
    where every answer needs one, whose noise only says at which rank it stands."""
    detectable: Mapping[str, Mapping[str, float]]
    """By set (full, fast) and check: the smallest share of lost questions that blocks in 80 % of such golden sets."""
    embedding_ms: Mapping[str, float]
    """Percentiles of the time one warm question takes to embed, and n: the stage no run times, its vectors being cached."""
    agreement: tuple[int, int]
    """Of so many fast runs that a full run judged too, how many ended on the same side."""


def calibrate(
    inputs: Inputs,
    material: Material,
    vectors: Vectors,
    fast: Cases,
    as_of: dt.datetime,
    history: Iterable[HistoryLine],
    repeats: int,
) -> Calibration:
    """Examine the same thing `repeats` times more and say what its figures are worth; `history`: the suite's runs."""
    suite, cases = inputs.suite, inputs.golden.cases
    draw = np.random.default_rng(SEED)
    examined = [_examined(inputs, material, vectors, as_of, draw if n else None) for n in range(repeats + 1)]
    first, *others = [scores.of(suite.retrieval.method) for scores in examined]
    contract = Figure("contract", suite.top_k)
    base, mark = Column.of(first, contract), suite.pass_mark - EPSILON
    columns = {figure: Column.of(first, figure) for figure in critical_tolerances(suite)}
    gated = {figure: column for figure, column in columns.items() if column.cases}
    band = _band(first, others)
    clusters = clusters_of(
        {name: case.cluster for name, case in cases.items()}, {name: case.query for name, case in cases.items()}
    )
    floors = {figure: _lower_bound(column, clusters) - MARGIN for figure, column in gated.items()}
    return Calibration(
        repeats=repeats,
        cases=len(base.cases),
        band={str(figure): difference for figure, difference in band.items()},
        flips=sum(_flips(Column.of(other, contract), base, mark) for other in others),
        false_alarms=_false_alarms(suite, cases, first, others, {contract: base, **gated}),
        floors={str(figure): round(floor, 3) for figure, floor in floors.items() if part_of(figure).higher_is_better},
        tolerances={str(figure): round(max(2 * band.get(figure, 0.0), 0.005), 3) for figure in gated},
        noise_ceilings=noise_ceilings(suite, examined[0]),
        detectable={
            name: detectable(suite, asked, examined[0], len(inputs.kb.cards))
            for name, asked in (("full", cases), ("fast", fast))
        },
        embedding_ms=embedding_times(suite, material, cases),
        agreement=agreement(history),
    )


def _false_alarms(
    suite: Suite, cases: Cases, first: LaneScores, others: Sequence[LaneScores], columns: Mapping[Figure, Column]
) -> dict[str, dict[str, float]]:
    """Rates of false alarms by how much noise is put on each case beside what was observed."""
    canaries = frozenset(name for name, case in cases.items() if case.canary)
    deltas = {
        figure: np.concatenate([_deltas(Column.of(other, figure), column) for other in others])
        for figure, column in columns.items()
    }
    return {
        "observed" if deviation is None else f"{deviation:g}": false_alarms(suite, first, deltas, deviation, canaries)
        for deviation in (None, *DEVIATIONS)
    }


def _examined(
    inputs: Inputs, material: Material, vectors: Vectors, as_of: dt.datetime, draw: np.random.Generator | None
) -> Scores:
    """One examination; with `draw`, of an index built in another order, some of its rows embedded anew."""
    suite, row_vectors = inputs.suite, material.vectors
    order = np.arange(len(material.rows))
    if draw is not None:
        order = draw.permutation(order)
        sampled = np.sort(draw.choice(order, min(SAMPLED, len(order)), replace=False))
        row_vectors = row_vectors.copy()
        row_vectors[sampled] = _embed_anew(suite, material, _taken(material.rows, sampled.tolist()))
    with temporary_store("calibration") as store:
        ingest(suite, _taken(material.rows, order.tolist()), row_vectors[order], store, "calibration")
        index = Index(material.rows, row_vectors, store, "calibration")
        run = retrieve(suite, index, inputs.golden.cases, vectors, as_of, Mode.FULL)
    return score(suite, inputs.kb, inputs.golden.cases, run)


def _taken(rows: Rows, places: Sequence[int]) -> Rows:
    """The rows at these places, in this order."""
    return Rows(
        ids=tuple(rows.ids[place] for place in places),
        texts=tuple(rows.texts[place] for place in places),
        languages=tuple(rows.languages[place] for place in places),
        fields=tuple(rows.fields[place] for place in places),
        chunks=tuple(rows.chunks[place] for place in places),
        cards=tuple(rows.cards[place] for place in places),
    )


def _embed_anew(suite: Suite, material: Material, rows: Rows) -> Vectors:
    """Vectors of some rows in another batch size, without the cache."""
    other = suite.model_copy(update={"embedding": suite.embedding.model_copy(update={"batch": suite.embedding.batch // 4 + 1})})
    with tempfile.TemporaryDirectory(prefix="kbgate-") as empty:
        return embed_rows(other, material.model, rows, Path(empty))


def _band(first: LaneScores, others: Sequence[LaneScores]) -> dict[Figure, float]:
    """The largest |difference| of each figure's mean that a baseline holds, by the figure's name."""
    band = {}
    for figure in sorted(first.figures, key=str):
        column = Column.of(first, figure)
        if column.cases and part_of(figure).stored:
            means = [float(Column.of(other, figure).values.mean()) for other in others]
            band[figure] = max(abs(mean - float(column.values.mean())) for mean in means)
    return band


def _deltas(other: Column, base: Column) -> Floats:
    """How far each case moved, where both have the figure."""
    moved = other.as_in(base) - base.values
    return moved[~np.isnan(moved)]


def _flips(other: Column, base: Column, mark: float) -> int:
    """Cases that pass in one and fail in the other; a case without the figure does not pass."""
    return int(((other.as_in(base) >= mark) != (base.values >= mark)).sum())


def noise_ceilings(suite: Suite, scores: Scores) -> dict[str, float]:
    """By how many cards an answer needs, the noise that 95 % of the healthy cases do not exceed, rounded up."""
    noise = scores.of(suite.retrieval.method)[Figure("noise", suite.top_k)]
    needed = {place.case: len(place.groups) for place in scores.placements.values() if place.groups}
    if set(needed.values()) <= {1}:
        return {}
    # Noise is defined where every group is in the top k: a case that has any is healthy.
    healthy = {number: [value for case, value in noise.items() if needed[case] == number] for number in needed.values()}
    return {
        str(number): math.ceil(round(float(np.quantile(values, HEALTHY, method="higher")) * 1000, 3)) / 1000
        for number, values in sorted(healthy.items())
        if values
    }


def embedding_times(suite: Suite, material: Material, cases: Cases) -> dict[str, float]:
    """p50, p95 and p99 in milliseconds of up to `TIMED` questions embedded one by one; what n is too small for is absent.

    Nothing but n = 0 where the method asks for no vectors.
    """
    if material.model is None:
        return {"n": 0}
    times = time_queries(suite, material.model, [case.query for case in cases.values()][:TIMED])
    least = {50: 1, 95: P95_FROM, 99: P99_FROM}
    percentiles = {f"p{share}": float(np.percentile(times, share)) for share, of in least.items() if len(times) >= of}
    return {**percentiles, "n": len(times)}


def _lower_bound(column: Column, clusters: Mapping[str, str]) -> float:
    table = by_cluster(column.values[:, None], np.array([clusters[case] for case in column.cases]))
    return float(interval_of_mean(table, np.zeros(1), np.ones(1))[0][0])


def agreement(history: Iterable[HistoryLine]) -> tuple[int, int]:
    """Of the fast runs in a history whose very state a full run judged too: how many, and how many on the same side."""
    lines = list(history)
    full = {str(line.fingerprints): line.exit_code == 0 for line in lines if line.mode == Mode.FULL}
    fast = [(str(line.fingerprints), line.exit_code == 0) for line in lines if line.mode == Mode.FAST]
    both = [(full[state], green) for state, green in fast if state in full]
    return len(both), sum(one == other for one, other in both)


def as_json(calibration: Calibration) -> dict[str, JsonValue]:
    """A calibration as JSON values."""
    return dataclasses.asdict(calibration)


def lines_of(calibration: Calibration) -> list[str]:
    """A calibration as a person reads it."""
    moved = {key: band for key, band in calibration.band.items() if band > 0}
    lines = [
        f"noise of {calibration.repeats} more examinations of the same: "
        + (", ".join(f"{key} {band:.4f}" for key, band in sorted(moved.items())) or "none, every figure is the same")
        + "; "
        + flips_told(calibration.flips, calibration.cases, calibration.repeats),
    ]
    for deviation, rates in calibration.false_alarms.items():
        about = "as observed" if deviation == "observed" else f"with per-case noise of sd {deviation}"
        lines.append(f"false alarms {about}: " + ", ".join(f"{name} {100 * rate:.1f} %" for name, rate in rates.items()))
    for name, drops in calibration.detectable.items():
        shown = ", ".join(f"{check} {100 * drop:.1f} %" for check, drop in drops.items())
        lines.append(f"smallest share of lost questions seen in 80 % of such golden sets, {name} set: {shown}")
    for key, tolerance in calibration.tolerances.items():
        floor = f"floor = {calibration.floors[key]:g}, " if key in calibration.floors else ""
        lines.append(f"proposed for {key}: {floor}tolerance = {tolerance:g}")
    ceilings = ", ".join(f"{number} = {ceiling:g}" for number, ceiling in calibration.noise_ceilings.items())
    lines.append(
        f"proposed for [acceptance] calibrated, by how many cards an answer needs (95 % of the healthy ones keep it): "
        f"noise = {{{ceilings}}}"
        if ceilings
        else "no ceiling on noise is proposed: every answer needs one card, and its noise only says at which rank it stands"
    )
    times = dict(calibration.embedding_ms)
    n = times.pop("n")
    if times:
        lines.append(f"one question takes to embed: {', '.join(f'{p} {ms:.1f} ms' for p, ms in times.items())} (n = {n})")
    judged, agreed = calibration.agreement
    lines.append(f"the fast set agreed with the full one in {agreed} of {judged} states both judged")
    return lines
