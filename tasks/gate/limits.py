"""Do the figures stay within what [gates] allows, and did any gate look at all?"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

import pandas as pd

from tasks.comparison import EPSILON
from tasks.domain import Exam, Reason
from tasks.registry import METRICS, Metric, check, metric_of
from tasks.settings import GATED_COUNTS, Gate


@check("comparable", level="inconclusive")
def comparable(exam: Exam) -> Iterator[Reason]:
    """There is a baseline, and it measured the same thing."""
    if exam.baseline is None:
        command = f'kbgate baseline update {shlex.quote(exam.suite.given)} --reason "first baseline"'
        sentence = f"no baseline to compare with; read the report, then accept it with: {command}"
        yield Reason("comparable", "inconclusive", sentence, code="no_baseline")
    for sentence in exam.comparison.incomparable:
        yield Reason("comparable", "inconclusive", sentence, code="incomparable")


@check("some_gate", level="inconclusive")
def some_gate(exam: Exam) -> Iterator[Reason]:
    """At least one critical gate looked at where gold stands, for at least one case."""
    for name, gate in _gates(exam):
        if gate.level == "critical" and (name in GATED_COUNTS or METRICS[name.partition("@")[0]].judges_gold):
            key = METRICS["contract"].key(exam.suite.top_k) if name in GATED_COUNTS else _key(exam, name)
            if _figure(exam, key)["n"]:
                return
    sentence = "no critical gate looked at where gold stands: nothing would have stopped a bad index"
    yield Reason("some_gate", "inconclusive", sentence, code="no_gates")


@check("limits", level="gated")
def limits(exam: Exam) -> Iterator[Reason]:
    """Every gated metric stays within its tolerance, floor and ceiling."""
    for name, gate in _gates(exam):
        if name in GATED_COUNTS:
            continue
        key = _key(exam, name)
        figure, (part, _) = _figure(exam, key), metric_of(key)
        n, now = int(figure["n"]), figure["current"]
        if n < gate.min_n:
            sentence = (
                f"{key} was measured on n = {n} cases, at least {gate.min_n} are needed"
                if n
                else f"{key}: not measured (n = 0)"
            )
            level = "inconclusive" if gate.level == "critical" else gate.level
            yield Reason(f"limits.{name}", level, sentence, code="underpowered" if level == "inconclusive" else "")
            continue
        for sentence in _broken_limits(key, part, gate, figure, exam):
            yield Reason(f"limits.{name}", gate.level, f"{sentence}, n = {n}")
        if gate.tolerance is not None and exam.baseline and math.isnan(figure["baseline"]) and not exam.comparison.incomparable:
            level = "supporting" if gate.level == "critical" else gate.level
            yield Reason(f"limits.{name}", level, f"{key} {now:.3f} is new: the baseline has no figure, so it was not judged")


def _broken_limits(key: str, part: Metric, gate: Gate, figure: pd.Series, exam: Exam) -> Iterator[str]:
    now, delta = figure["current"], figure["delta"]
    worse = -delta if part.higher_is_better else delta
    if gate.tolerance is not None and worse > gate.tolerance + EPSILON:
        verb = "fell" if part.higher_is_better else "rose"
        change = f"{key} {verb} by {abs(delta):.3f} ({figure['baseline']:.3f} to {now:.3f})"
        yield f"{change}; {gate.tolerance:g} is allowed"
    if gate.floor is not None and now < gate.floor - EPSILON:
        yield f"{key} is {now:.3f}, below its floor of {gate.floor:g}"
    if gate.ceiling is not None and now > gate.ceiling + EPSILON:
        yield f"{key} is {now:.3f}, above its ceiling of {gate.ceiling:g}"


def _gates(exam: Exam) -> list[tuple[str, Gate]]:
    """The suite's gates and the floors of the command line."""
    return [*exam.suite.gates.items(), *((name, Gate(floor=floor)) for name, floor in exam.suite.floors.items())]


def _key(exam: Exam, name: str) -> str:
    part, cut = metric_of(name)
    return part.key(cut or exam.suite.top_k)


def _figure(exam: Exam, key: str) -> pd.Series:
    """The method's figure over all compared cases; over all asked ones where only a limit is to be held."""
    figures = exam.comparison.figures
    own = figures[(figures["lane"] == exam.run.method) & (figures["slice"] == "") & (figures["metric"] == key)]
    return own.iloc[0]
