"""Do parts of the cases stay within their own limits, where a mean over all would hide them?"""

from __future__ import annotations

from collections.abc import Iterator

from kbgate.tasks.conclusions import Code, Exam, Level, Reason
from kbgate.tasks.errors import named
from kbgate.tasks.gate import GATED, check
from kbgate.tasks.gate.limits import gates_of, interval, unsure, worsening
from kbgate.tasks.metrics import figure_of, part_of
from kbgate.tasks.results import Compared
from kbgate.tasks.settings import Slice
from kbgate.tasks.tables import EPSILON

FILTERED = "filtered=yes"


@check("slices", level=GATED)
def slices(exam: Exam) -> Iterator[Reason]:
    """Every [[slice]] stays within its tolerance; one of fewer than `min_n` cases informs and cannot block."""
    for rule in exam.suite.slices:
        figure = figure_of(rule.metric, exam.suite)
        parts = [row for row in _sliced(exam) if row.figure == figure and row.slice.startswith(f"{rule.by}=")]
        compared = [row for row in parts if row.delta is not None]
        unsaid = sorted({row.slice for row in parts} - {row.slice for row in compared})
        unsaid = unsaid if compared else [f"every part by {rule.by}"]
        if unsaid and exam.baseline and not exam.comparison.incomparable:
            level = unsure(rule.level)
            sentence = f"{named(unsaid)}: {figure} could not be compared with the baseline"
            code = Code.INCOMPARABLE if level == Level.INCONCLUSIVE else Code.NONE
            yield Reason("slices", level, sentence, code=code)
        for row in compared:
            yield from _worse(rule, row)


def _worse(rule: Slice, row: Compared) -> Iterator[Reason]:
    """A part that lost more than its rule allows."""
    part = part_of(row.figure)
    drop = worsening(part, row)
    if drop <= rule.tolerance + EPSILON:
        return
    verb = "fell" if part.higher_is_better else "rose"
    sentence = (
        f"{row.slice}: {row.figure} {verb} by {drop:.3f} ({row.baseline:.3f} to {row.current:.3f}, "
        f"{interval(row)}); {rule.tolerance:g} is allowed, n = {row.n}"
    )
    if row.n < rule.min_n:
        yield Reason("slices", Level.ADVISORY, f"{sentence} (below min_n = {rule.min_n}: informs only)")
    else:
        yield Reason("slices", Level(rule.level), sentence)


@check("filtered_fidelity", level=GATED)
def filtered_fidelity(exam: Exam) -> Iterator[Reason]:
    """The index finds what exact search finds in the filtered cases apart, where many a graph loses most."""
    for name, gate in gates_of(exam):
        if name.partition("@")[0] == "fidelity" and gate.floor is not None:
            figure = figure_of(name, exam.suite)
            for row in _sliced(exam):
                filtered = row.slice == FILTERED and row.figure == figure
                if filtered and row.current is not None and row.current < gate.floor - EPSILON:
                    sentence = (
                        f"{figure} is {row.current:.3f} in filtered cases, below its floor of {gate.floor:g}, n = {row.n}"
                    )
                    yield Reason("filtered_fidelity", Level(gate.level), sentence)


def _sliced(exam: Exam) -> list[Compared]:
    return [row for row in exam.comparison.figures if row.slice]
