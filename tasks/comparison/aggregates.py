"""Figures of a whole run beside the baseline's, over the same cases: an area under a curve is no mean of anything.

The baseline keeps what they are made from, a number a case, so that new and edited cases stay out of them as out of any mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from kbgate.tasks.domain import Cases
from kbgate.tasks.metrics import AGGREGATES
from kbgate.tasks.results import Compared, Placement, Run
from kbgate.tasks.schema import BaselineCase, BaselineSummary, Mean, Means
from kbgate.tasks.tables import DIGITS, Figure, Hits

_COSINE, _LEAST = "cosine", -1.0


def aggregates(rows: Mapping[str, BaselineCase]) -> Means:
    """The figures of the whole run that accepted rows make, each with the number of its cases."""
    had_gold = _had_gold(rows)
    return _measured({name: cosine for name in had_gold if (cosine := rows[name].cosine) is not None}, had_gold)


def of_today(summary: BaselineSummary, made: Means) -> Means:
    """Those of a baseline's figures that the versions of today would make of the same rows."""
    versions = {name: part.version for name, part in AGGREGATES.items()}
    return {name: mean for name, mean in made.items() if summary.metric_versions.get(name) == versions.get(name)}


def _had_gold(rows: Mapping[str, BaselineCase]) -> dict[str, bool]:
    """Whether accepted cases have an answer, without those whose asker could see none of it."""
    return {name: bool(row.asked.grades) for name, row in rows.items() if row.gold_ranks or not row.asked.grades}


def _has_gold(asked: Cases, placements: Mapping[str, Placement]) -> dict[str, bool]:
    """Whether cases have an answer, without those whose asker may see none of it: for these, finding nothing is right."""
    return {
        name: bool(case.grades)
        for name, case in asked.items()
        if not case.grades or (name in placements and placements[name].groups)
    }


def aggregate_figures(
    run: Run,
    asked: Cases,
    placements: Mapping[str, Placement],
    then: Mapping[str, BaselineCase],
    population: set[str],
    anchored: Means,
) -> Iterator[Compared]:
    """Every figure of the whole run, beside the baseline's of the same cases; `anchored`: what the anchor holds of them.

    `population`: the cases that are compared. Where the baseline holds nothing to make a figure from, it stands alone.
    """
    has_gold, had_gold = _has_gold(asked, placements), _had_gold(then)
    for part in AGGREGATES.values():
        for measured in () if part.stored else part.measure(run, has_gold):
            value = measured.value if np.isfinite(measured.value) else None
            yield Compared(measured.lane, Figure(part.name), current=value, n=measured.n)
    rows = {name: then[name] for name in had_gold if name in population and then[name].cosine is not None}
    rows = rows if aggregates(rows) else {}
    seen = sorted(name for name in rows or population if name in has_gold)
    cosines = {name: best for name in seen if (best := best_cosine(run, name)) is not None}
    # An answer that is no longer found, or hidden by now, counts as the least like its question: no loss leaves the figure.
    cosines |= {name: _LEAST for name in rows if name not in cosines and had_gold[name]}
    has_gold |= {name: had_gold[name] for name in rows}
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
