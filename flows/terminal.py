"""What a person sees: the verdict, its reasons, the figures, and errors as sentences."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kbgate.tasks.domain import Evaluation
from kbgate.tasks.errors import KbgateError
from kbgate.tasks.results import Result
from kbgate.tasks.tables import rows_of

_COLOURS = {"PASS": "green", "WARN": "yellow", "BLOCK": "red", "INCONCLUSIVE": "magenta", "ERROR": "red"}


_LINES = 8


def console(stream: Any) -> Console:
    """A console; off a terminal a line is as long as it must be: nothing is cut for a width that is not there."""
    wide = None if stream.isatty() else 400
    return Console(file=stream, highlight=False, soft_wrap=not stream.isatty(), width=wide)


def print_verdict(evaluation: Evaluation) -> None:
    """The verdict, its reasons and the figures at k, on standard error, so that --json stays clean."""
    out, verdict, exam = console(sys.stderr), evaluation.verdict, evaluation.exam
    head = f"{verdict.name}{' (provisional: the full set decides)' if verdict.provisional else ''}"
    out.print(Text(head, style=f"bold {_COLOURS[verdict.name]}"), Text(f"{exam.suite.name}, {exam.run.mode} set"))
    for reason in verdict.reasons:
        out.print(Text(f"  {reason.level}: {reason.sentence}"))
    for group in evaluation.diagnosis.groups[:_LINES]:
        out.print(Text(f"  why: {group.sentence}"))
    if evaluation.diagnosis.trouble:
        out.print(Text(f"  why: could not be looked into ({evaluation.diagnosis.trouble})"))
    blind = exam.comparison.blind_spot(exam.run.method, f"contract@{exam.suite.top_k}")
    if blind:
        out.print(Text(f"  {blind}"))
    figures = exam.comparison.figures
    own = figures[(figures["lane"] == exam.run.method) & (figures["slice"] == "")]
    table = Table("metric", "baseline", "current", "delta", "n", box=None, pad_edge=False)
    for row in rows_of(own):
        if row["n"] and (row["metric"].endswith(f"@{exam.suite.top_k}") or "@" not in row["metric"]):
            shown = (_figure(row["baseline"]), _figure(row["current"]), _figure(row["delta"], "+"))
            table.add_row(row["metric"], *shown, str(row["n"]))
    out.print(table)
    out.print(Text(f"report: {evaluation.folder / 'report.md'}"))


def print_result(result: Result) -> None:
    """The verdict of any flow, in a line."""
    console(sys.stderr).print(Text(result.name, style=f"bold {_COLOURS[result.name]}"), Text(result.said))


def complain(error: KbgateError) -> int:
    """An error as sentences, one a line; returns its exit code."""
    names = {1: "REFUSED", 2: "bad input", 4: "ERROR"}
    for line in str(error).split("\n"):
        print(f"kbgate: {names[error.exit_code]}: {line}", file=sys.stderr)
    return error.exit_code


def _figure(value: float, sign: str = "") -> str:
    return "-" if value != value else f"{value:{sign}.3f}"
