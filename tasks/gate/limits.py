"""Do the figures stay within what [gates] allows, and did any gate look at all?"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

import pandas as pd

from kbgate.tasks.comparison.statistics import ALPHA, holm
from kbgate.tasks.domain import Exam, Reason
from kbgate.tasks.errors import named
from kbgate.tasks.registry import METRICS, Aggregate, Metric, check, metric_of
from kbgate.tasks.settings import EPSILON, GATED_COUNTS, Gate
from kbgate.tasks.tables import FIGURE_COLUMNS


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
        if gate.level == "critical" and (name in GATED_COUNTS or metric_of(name)[0].judges_gold):
            key = METRICS["contract"].key(exam.suite.top_k) if name in GATED_COUNTS else _key(exam, name)
            if _figure(exam, key)["n"]:
                return
    sentence = "no critical gate looked at where gold stands: nothing would have stopped a bad index"
    yield Reason("some_gate", "inconclusive", sentence, code="no_gates")


@check("limits", level="gated")
def limits(exam: Exam) -> Iterator[Reason]:
    """Every gated metric stays within its tolerance, floor and ceiling."""
    ps = _adjusted(exam)
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
        adjusted = ps.get(name, float(figure["p"]))
        for gravity, sentence in _broken_limits(key, part, gate, figure, adjusted):
            code = "underpowered" if gravity == "inconclusive" else ""
            yield Reason(f"limits.{name}", gravity, f"{sentence}, n = {n}", code=code)
        if gate.tolerance is not None and exam.baseline and math.isnan(figure["baseline"]) and not exam.comparison.incomparable:
            level = "supporting" if gate.level == "critical" else gate.level
            yield Reason(f"limits.{name}", level, f"{key} {now:.3f} is new: the baseline has no figure, so it was not judged")


def _adjusted(exam: Exam) -> dict[str, float]:
    """The p of each critical gate with the rule `significant`, adjusted for there being several."""
    tested = [name for name, gate in _gates(exam) if gate.rule == "significant" and gate.level == "critical"]
    ps = [float(_figure(exam, _key(exam, name))["p"]) for name in tested]
    return dict(zip(tested, holm([1.0 if math.isnan(p) else p for p in ps]), strict=True))


def _broken_limits(
    key: str, part: Metric | Aggregate, gate: Gate, figure: pd.Series, adjusted: float
) -> Iterator[tuple[str, str]]:
    """What a figure does beyond what its gate allows, or what so few cases cannot say: (level, sentence)."""
    now, delta = figure["current"], figure["delta"]
    if gate.tolerance is not None and not math.isnan(delta):
        yield from _fallen(key, part, gate, figure, adjusted)
    about = "" if math.isnan(figure["low"]) or not math.isnan(delta) else f" ({_interval(figure)})"
    if gate.floor is not None and now < gate.floor - EPSILON:
        yield gate.level, f"{key} is {now:.3f}{about}, below its floor of {gate.floor:g}"
    if gate.ceiling is not None and now > gate.ceiling + EPSILON:
        yield gate.level, f"{key} is {now:.3f}{about}, above its ceiling of {gate.ceiling:g}"


def _fallen(key: str, part: Metric | Aggregate, gate: Gate, figure: pd.Series, adjusted: float) -> Iterator[tuple[str, str]]:
    assert gate.tolerance is not None
    delta = figure["delta"]
    worse = -delta if part.higher_is_better else delta
    verb = "fell" if part.higher_is_better else "rose"
    change = f"{key} {verb} by {abs(delta):.3f} ({figure['baseline']:.3f} to {figure['current']:.3f}, {_interval(figure)})"
    allowed = f"{gate.tolerance:g} is allowed"
    unsure = "inconclusive" if gate.level == "critical" else gate.level
    beyond = worse > gate.tolerance + EPSILON
    if gate.rule == "significant":
        if beyond and adjusted <= ALPHA:
            yield gate.level, f"{change}; {allowed}, p = {adjusted:.4f}"
        elif beyond:
            yield unsure, f"{change}; {allowed}, and chance alone could do it (p = {adjusted:.4f})"
        elif figure["visible"] > gate.tolerance + EPSILON:
            yield unsure, f"{key}: only a fall beyond {figure['visible']:.3f} would show; the tolerance is {gate.tolerance:g}"
    elif beyond:
        yield gate.level, f"{change}; {allowed}"
    elif gate.rule == "noninferior":
        worst = -figure["low"] if part.higher_is_better else figure["high"]
        if worst > gate.tolerance + EPSILON:
            yield unsure, f"{key}: a change of {_interval(figure)} does not exclude a worsening beyond {gate.tolerance:g}"


def _interval(figure: pd.Series) -> str:
    return f"95 % interval {figure['low']:+.3f} to {figure['high']:+.3f}"


@check("slices", level="gated")
def slices(exam: Exam) -> Iterator[Reason]:
    """Every [[slice]] stays within its tolerance; one of fewer than `min_n` cases informs and cannot block."""
    figures = exam.comparison.figures
    own = figures[(figures["lane"] == exam.run.method) & (figures["slice"] != "")]
    for rule in exam.suite.slices:
        key = _key(exam, rule.metric)
        part, _ = metric_of(key)
        parts = own[(own["metric"] == key) & own["slice"].str.startswith(f"{rule.by}=")]
        found = parts[parts["delta"].notna()]
        unsaid = sorted(set(parts["slice"]) - set(found["slice"])) if len(found) else [f"every part by {rule.by}"]
        if unsaid and exam.baseline and not exam.comparison.incomparable:
            level = "inconclusive" if rule.level == "critical" else rule.level
            sentence = f"{named(unsaid)}: {key} could not be compared with the baseline"
            yield Reason("slices", level, sentence, code="incomparable" if level == "inconclusive" else "")
        for _, figure in found.iterrows():
            worse = figure["delta"] * (-1 if part.higher_is_better else 1)
            if worse > rule.tolerance + EPSILON:
                small = figure["n"] < rule.min_n
                verb = "fell" if part.higher_is_better else "rose"
                sentence = (
                    f"{figure['slice']}: {key} {verb} by {worse:.3f} ({figure['baseline']:.3f} to {figure['current']:.3f}, "
                    f"{_interval(figure)}); {rule.tolerance:g} is allowed, n = {figure['n']}"
                )
                note = f" (below min_n = {rule.min_n}: informs only)" if small else ""
                yield Reason("slices", "advisory" if small else rule.level, sentence + note)


@check("filtered_fidelity", level="gated")
def filtered_fidelity(exam: Exam) -> Iterator[Reason]:
    """The index finds what exact search finds in the filtered cases apart, where many a graph loses most."""
    figures = exam.comparison.figures
    for name, gate in _gates(exam):
        if name.partition("@")[0] == "fidelity" and gate.floor is not None:
            key = _key(exam, name)
            own = figures[(figures["slice"] == "filtered=yes") & (figures["metric"] == key)]
            for _, figure in own.iterrows():
                if figure["n"] and figure["current"] < gate.floor - EPSILON:
                    sentence = f"{key} is {figure['current']:.3f} in filtered cases, below its floor of {gate.floor:g}"
                    yield Reason("filtered_fidelity", gate.level, f"{sentence}, n = {figure['n']}")


_NOTHING = pd.Series({name: 0 if name == "n" else math.nan for name in FIGURE_COLUMNS})
"""A figure that was not measured at all."""


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
    return own.iloc[0] if len(own) else _NOTHING
