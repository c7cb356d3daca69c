"""Do the figures stay within what [gates] allows, and did any gate look at all?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kbgate.tasks.comparison.statistics import ALPHA, holm
from kbgate.tasks.conclusions import Code, Exam, Level, Reason
from kbgate.tasks.errors import counted
from kbgate.tasks.gate import GATED, check
from kbgate.tasks.gate.gold_texts import offer
from kbgate.tasks.gate.rehearsal import can_close
from kbgate.tasks.metrics import Part, figure_of, part_of
from kbgate.tasks.results import Compared
from kbgate.tasks.settings import GATED_COUNTS, Gate
from kbgate.tasks.tables import EPSILON, Figure


@check("comparable", level=Level.INCONCLUSIVE)
def comparable(exam: Exam) -> Iterator[Reason]:
    """There is a baseline, and it measured the same thing."""
    if exam.baseline is None:
        command = f'kbgate baseline update {shlex.quote(exam.suite.given)} --reason "first baseline"'
        sentence = "no baseline to compare with" + offer(exam, f"; read the report, then accept it with: {command}")
        yield Reason("comparable", Level.INCONCLUSIVE, sentence, code=Code.NO_BASELINE)
    for sentence in exam.comparison.incomparable:
        yield Reason("comparable", Level.INCONCLUSIVE, sentence, code=Code.INCOMPARABLE)


@check("some_gate", level=Level.INCONCLUSIVE)
def some_gate(exam: Exam) -> Iterator[Reason]:
    """At least one critical gate looked at where gold stands, and some ranking of these very cases would have made it fire."""
    if exam.comparison.incomparable:
        return
    if not any(place.groups for place in exam.scores.placements.values()):
        sentence = "no critical gate looked at where gold stands: nothing would have stopped a bad index"
    elif not can_close(exam):
        n = sum(bool(place.groups) for place in exam.scores.placements.values())
        sentence = (
            f"no critical gate could close: of the worst ranking there is of the {counted(n, 'case')} with gold none would say "
            "a word; give a line of [gates] a smaller tolerance, ceiling or slack, or a higher floor"
        )
    else:
        return
    yield Reason("some_gate", Level.INCONCLUSIVE, sentence, code=Code.NO_GATES)


@check("limits", level=GATED)
def limits(exam: Exam) -> Iterator[Reason]:
    """Every gated metric stays within its tolerance, floor and ceiling."""
    ps = _adjusted(exam)
    for name, gate in gates_of(exam):
        if name in GATED_COUNTS:
            continue
        figure = figure_of(name, exam.suite)
        row, part = exam.comparison.figure(exam.run.method, figure), part_of(figure)
        if row.n < gate.min_n or row.current is None:
            yield _too_few(f"limits.{name}", figure, row.n, gate)
            continue
        for level, sentence in _broken_limits(part, gate, row, ps.get(name, row.p)):
            yield Reason(f"limits.{name}", level, f"{sentence}, n = {row.n}", code=_code(level))
        if gate.tolerance is not None and exam.baseline and row.baseline is None and not exam.comparison.incomparable:
            level = Level.SUPPORTING if gate.level == "critical" else Level(gate.level)
            sentence = f"{figure} {row.current:.3f} is new: the baseline has no figure, so it was not judged"
            yield Reason(f"limits.{name}", level, sentence)


def _too_few(name: str, figure: Figure, n: int, gate: Gate) -> Reason:
    """A figure of fewer cases than its gate asks for."""
    level = unsure(gate.level)
    sentence = f"{figure} was measured on n = {n} cases, at least {gate.min_n} are needed"
    return Reason(name, level, sentence if n else f"{figure}: not measured (n = 0)", code=_code(level))


def unsure(level: str) -> Level:
    """How grave it is not to know: for a critical gate inconclusive, for others as grave as the gate."""
    return Level.INCONCLUSIVE if level == Level.CRITICAL else Level(level)


def _code(level: Level) -> Code:
    return Code.UNDERPOWERED if level == Level.INCONCLUSIVE else Code.NONE


def _adjusted(exam: Exam) -> dict[str, float]:
    """The p of each critical gate with the rule `significant`, adjusted for there being several."""
    tested = [name for name, gate in gates_of(exam) if gate.rule == "significant" and gate.level == "critical"]
    rows = [exam.comparison.figure(exam.run.method, figure_of(name, exam.suite)) for name in tested]
    return dict(zip(tested, holm([1.0 if row.p is None else row.p for row in rows]), strict=True))


def _broken_limits(part: Part, gate: Gate, row: Compared, adjusted: float | None) -> Iterator[tuple[Level, str]]:
    """What a figure does beyond what its gate allows, or what so few cases cannot say: (level, sentence)."""
    now = row.current
    if now is None:
        return
    if gate.tolerance is not None and row.delta is not None:
        yield from _worse(part, gate, gate.tolerance, row, 1.0 if adjusted is None else adjusted)
    about = f" ({interval(row)})" if row.low is not None and row.delta is None else ""
    if gate.floor is not None and now < gate.floor - EPSILON:
        yield Level(gate.level), f"{row.figure} is {now:.3f}{about}, below its floor of {gate.floor:g}"
    if gate.ceiling is not None and now > gate.ceiling + EPSILON:
        yield Level(gate.level), f"{row.figure} is {now:.3f}{about}, above its ceiling of {gate.ceiling:g}"


def _worse(part: Part, gate: Gate, tolerance: float, row: Compared, adjusted: float) -> Iterator[tuple[Level, str]]:
    """What a figure lost beyond its tolerance, by the gate's rule."""
    drop = worsening(part, row)
    beyond = drop > tolerance + EPSILON
    change = f"{row.figure} {moved(part, row)}; {tolerance:g} is allowed"
    if gate.rule == "significant":
        if beyond and adjusted <= ALPHA:
            yield Level(gate.level), f"{change}, p = {adjusted:.4f}"
        elif beyond:
            yield unsure(gate.level), f"{change}, and chance alone could do it (p = {adjusted:.4f})"
        elif row.visible is not None and row.visible > tolerance + EPSILON:
            sentence = f"{row.figure}: only a drop beyond {row.visible:.3f} would show; the tolerance is {tolerance:g}"
            yield unsure(gate.level), sentence
    elif beyond:
        yield Level(gate.level), change
    elif gate.rule == "noninferior":
        bound = row.low if part.higher_is_better else row.high
        if bound is None or (-bound if part.higher_is_better else bound) > tolerance + EPSILON:
            yield (
                unsure(gate.level),
                f"{row.figure}: a change of {interval(row)} does not exclude a worsening beyond {tolerance:g}",
            )


def worsening(part: Part, row: Compared) -> float:
    """How much worse a figure is than the baseline's; below 0 where it is better."""
    delta = row.delta or 0.0
    return -delta if part.higher_is_better else delta


def moved(part: Part, row: Compared) -> str:
    """A figure's change as half a sentence."""
    verb = "fell" if part.higher_is_better else "rose"
    return f"{verb} by {abs(row.delta or 0.0):.3f} ({row.baseline:.3f} to {row.current:.3f}, {interval(row)})"


def interval(row: Compared) -> str:
    """A figure's interval as half a sentence."""
    if row.low is None or row.high is None:
        return "no interval"
    return f"95 % interval {row.low:+.3f} to {row.high:+.3f}"


def gates_of(exam: Exam) -> list[tuple[str, Gate]]:
    """The suite's gates and the floors of the command line."""
    return [*exam.suite.gates.items(), *((name, Gate(floor=floor)) for name, floor in exam.suite.floors.items())]
