"""What a person sees: the verdict, its reasons, the figures, and errors as sentences."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kbgate.tasks.comparison.power import smallness
from kbgate.tasks.comparison.supply import supply
from kbgate.tasks.conclusions import Evaluation, VerdictName
from kbgate.tasks.errors import KbgateError
from kbgate.tasks.gate.opening import opening
from kbgate.tasks.outcomes import Result
from kbgate.tasks.printable import printable

_COLOURS = {
    VerdictName.PASS: "green",
    VerdictName.WARN: "yellow",
    VerdictName.BLOCK: "red",
    VerdictName.INCONCLUSIVE: "magenta",
    VerdictName.ERROR: "red",
}
_LINES = 8
"""Groups of a diagnosis that are told before the report tells the rest."""


def console(stream: TextIO) -> Console:
    """A console; off a terminal a line is as long as it must be: nothing is cut for a width that is not there."""
    wide = None if stream.isatty() else 400
    return Console(file=stream, highlight=False, soft_wrap=not stream.isatty(), width=wide)


def print_verdict(evaluation: Evaluation) -> None:
    """The verdict, its reasons and the figures at k, on standard error, so that --json stays clean."""
    out, verdict, exam = console(sys.stderr), evaluation.verdict, evaluation.exam
    head = f"{verdict.name}{' (provisional: the full set decides)' if verdict.provisional else ''}"
    out.print(line(head, style=f"bold {_COLOURS[verdict.name]}"), line(f"{exam.suite.name}, {exam.run.mode} set"))
    first = opening(exam, verdict)
    if first != verdict.headline:
        out.print(line(f"  {first}"))
    for reason in verdict.reasons:
        out.print(line(f"  {reason.level}: {reason.sentence}"))
    for group in evaluation.diagnosis.groups[:_LINES]:
        out.print(line(f"  why: {group.sentence}"))
    if evaluation.diagnosis.trouble:
        out.print(line(f"  why: could not be looked into ({evaluation.diagnosis.trouble})"))
    out.print(line(f"  {supply(exam)}"))
    if small := smallness(exam.golden):
        out.print(line(f"  {small}"))
    rows = [row for row in exam.comparison.of(exam.run.method) if row.n and row.figure.k in (None, exam.suite.top_k)]
    shown = [
        (str(row.figure), _number(row.baseline), _number(row.current), _number(row.delta, "+"), str(row.n)) for row in rows
    ]
    out.print(table_of(("metric", "baseline", "current", "delta", "n"), shown))
    out.print(line(f"report: {evaluation.folder / 'report.md'}"))


def print_result(result: Result) -> None:
    """The verdict of any flow, in a line."""
    console(sys.stderr).print(line(result.name, style=f"bold {_COLOURS[result.name]}"), line(result.summary))


def say(text: str, file: TextIO | None = None, end: str = "\n") -> None:
    """Print a text on standard output or another stream, each of its lines harmless."""
    print("\n".join(map(printable, text.split("\n"))), file=file, end=end)


def line(text: str, style: str = "") -> Text:
    """A text as one harmless line, nothing of it read as markup."""
    return Text(printable(text), style=style)


def complain(error: KbgateError) -> int:
    """An error as sentences, one a line; returns its exit code."""
    names = {1: "REFUSED", 2: "bad input", 4: "ERROR"}
    for sentence in str(error).split("\n"):
        say(f"kbgate: {names[error.exit_code]}: {sentence}", file=sys.stderr)
    return error.exit_code


def table_of(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Rows as a table without lines: texts as they are, nothing read as markup."""
    table = Table(*head, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(line(cell) for cell in row))
    return table


def _number(value: float | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}.3f}"
