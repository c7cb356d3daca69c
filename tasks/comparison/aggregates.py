"""Figures of a whole run beside the baseline's, over the same cases: an area under a curve is no mean of anything.

The baseline keeps what they are made from, a number a case, so that new and edited cases stay out of them as out of any mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from kbgate.tasks.domain import Cases
from kbgate.tasks.metrics import AGGREGATES
from kbgate.tasks.results import Compared, Run
from kbgate.tasks.schema import BaselineCase, Mean, Means
from kbgate.tasks.tables import DIGITS, Figure, Hits

_COSINE, _LEAST = "cosine", -1.0


def aggregates(rows: Mapping[str, BaselineCase]) -> Means:
    """The figures of the whole run that accepted rows make, each with the number of its cases."""
    cosines = {name: row.cosine for name, row in rows.items() if row.cosine is not None}
    return _measured(cosines, {name: bool(row.asked.grades) for name, row in rows.items()})


def aggregate_figures(
    run: Run, asked: Cases, then: Mapping[str, BaselineCase], population: set[str], anchored: Means
) -> Iterator[Compared]:
    """Every figure of the whole run, beside the baseline's of the same cases; `anchored`: what the anchor holds of them.

    `population`: the cases that are compared. Where the baseline holds nothing to make a figure from, it stands alone.
    """
    has_gold = {case.id: bool(case.grades) for case in asked.values()}
    for part in AGGREGATES.values():
        for measured in () if part.stored else part.measure(run, has_gold):
            value = measured.value if np.isfinite(measured.value) else None
            yield Compared(measured.lane, Figure(part.name), current=value, n=measured.n)
    rows = {name: row for name, row in then.items() if name in population and row.cosine is not None}
    rows = rows if aggregates(rows) else {}
    cosines = {name: best for name in sorted(rows or population) if (best := best_cosine(run, name)) is not None}
    # An answer that is no longer found counts as the least like its question: a loss must not leave the figure.
    cosines |= {name: _LEAST for name in rows if name not in cosines and has_gold[name]}
    before = aggregates({name: row for name, row in rows.items() if name in cosines})
    for name, now in _measured(cosines, has_gold).items():
        was, since = before.get(name), anchored.get(name)
        yield Compared(
            run.method,
            Figure(name),
            current=now.mean,
            n=now.n,
            baseline=was.mean if was else None,
            delta=now.mean - was.mean if was else None,
            since_anchor=now.mean - since.mean if was and since else None,
        )


def best_cosine(run: Run, case: str) -> float | None:
    """The best cosine of a question and a card, as it is stored and compared; None where no lane gives any."""
    best = run.of(run.cosine, case).score(1)
    return None if best is None else round(best, DIGITS)


def _measured(cosines: Mapping[str, float], has_gold: Mapping[str, bool]) -> Means:
    """The stored figures of a run that is known by the best cosine of each of its cases."""
    lane = {name: Hits.of([("", cosines[name])]) for name in sorted(cosines)}
    run = Run("", {}, {_COSINE: lane}, cosine=_COSINE)
    measured = {part.name: list(part.measure(run, has_gold)) for part in AGGREGATES.values() if part.stored}
    return {
        name: Mean(mean=round(figures[0].value, DIGITS), n=figures[0].n)
        for name, figures in measured.items()
        if figures and np.isfinite(figures[0].value)
    }
