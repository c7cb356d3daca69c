"""How long one warm question takes, stage by stage: each is asked alone, after a few that are not timed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from kbgate.tasks.metrics import Measured, aggregate
from kbgate.tasks.results import Run

SOURCE = "percentiles of single warm questions, linear interpolation"
P95_FROM, P99_FROM = 20, 100
"""Below so many questions a percentile is one of them, and is not printed."""
declare = partial(aggregate, source=SOURCE, higher_is_better=False, high=math.inf, unit="ms")


def _percentile(run: Run, share: float, least: int) -> Iterator[Measured]:
    for stage, times in sorted(_times(run).items()):
        if len(times) >= least:
            yield Measured(stage, float(np.percentile(times, share)), len(times))


def _times(run: Run) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    for answer in run.answers.values():
        if answer.outcome.measured:
            for lane, ms in {run.method: answer.ms, **answer.lane_ms}.items():
                times.setdefault(lane, []).append(ms)
    return times


@declare("latency_p50")
def latency_p50(run: Run, has_gold: Mapping[str, bool]) -> Iterator[Measured]:
    """Milliseconds within which half of the single warm questions are searched, by lane."""
    yield from _percentile(run, 50, 1)


@declare("latency_p95")
def latency_p95(run: Run, has_gold: Mapping[str, bool]) -> Iterator[Measured]:
    """Milliseconds within which 95 % of the single warm questions are searched; from 20 questions on."""
    yield from _percentile(run, 95, P95_FROM)


@declare("latency_p99")
def latency_p99(run: Run, has_gold: Mapping[str, bool]) -> Iterator[Measured]:
    """Milliseconds within which 99 % of the single warm questions are searched; from 100 questions on."""
    yield from _percentile(run, 99, P99_FROM)


@aggregate("latency_ratio", source=SOURCE, higher_is_better=False, high=math.inf, unit="times exact search")
def latency_ratio(run: Run, has_gold: Mapping[str, bool]) -> Iterator[Measured]:
    """Half of the questions take so many times what exact search takes in the same process; the only latency to gate."""
    times = _times(run)
    exact = times.get(run.exact, [])
    if run.method != run.exact and len(exact) >= P99_FROM:
        yield Measured(run.method, float(np.median(times[run.method]) / np.median(exact)), len(times[run.method]))
