"""The command line: reads arguments, calls a flow, prints what came of it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tasks.domain import Evaluation
from tasks.errors import InputError, KbgateError, Problem
from tasks.tables import rows_of

EXIT_CODES = """Exit codes: 0 PASS or WARN; 1 BLOCK, or a refused update; 2 bad input or usage; 3 INCONCLUSIVE;
4 ERROR: could not measure. Under make every failure is 2: only kbgate carries codes."""

app = typer.Typer(
    name="kbgate",
    help=f"The exam a knowledge base sits before it is allowed into production.\n\n{EXIT_CODES}",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
baseline_app = typer.Typer(help="The accepted scores of a suite.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(baseline_app, name="baseline")

SuiteFolder = Annotated[Path, typer.Argument(metavar="SUITE", help="A folder with suite.toml, or in BEIR form.")]
Reason = Annotated[str, typer.Option("--reason", help="Why this is the new baseline; it stays in the file.")]


@app.callback()
def _options(debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False) -> None:
    pass


@app.command(epilog=EXIT_CODES)
def evaluate(
    suite: SuiteFolder,
    fast: Annotated[bool, typer.Option("--fast", help="Ask the stratified subset only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print verdict.json on standard output.")] = False,
    floor: Annotated[list[str] | None, typer.Option(metavar="METRIC=VALUE", help="A critical floor; repeatable.")] = None,
) -> int:
    """Evaluate a knowledge base against its baseline and print the verdict."""
    evaluation = _evaluate(suite, fast, _floors(floor or []))
    if as_json:
        print((evaluation.folder / "verdict.json").read_text(encoding="utf-8"), end="")
    _print_verdict(evaluation)
    return evaluation.verdict.exit_code


@app.command(epilog=EXIT_CODES)
def check(suite: SuiteFolder) -> int:
    """Check settings, cards, cases and baseline, without asking anything: every mistake at once, with file and line."""
    from tasks import stages

    settings = stages.load_suite(suite)
    kb, golden = stages.load_cards(settings), stages.load_golden(settings)
    problems: list[Problem] = []
    try:
        stages.check_inputs(settings, kb, golden, None, strict=True)
    except InputError as error:
        problems += error.problems
    try:
        stages.read_baseline(settings)
    except InputError as error:
        problems += error.problems
    problems += kb.problems if settings.kb.on_bad_card == "reject" else ()
    if problems:
        raise InputError(problems)
    unasked = f", {golden.unjudged} questions without judgment left out" if golden.unjudged else ""
    print(f"{settings.name}: {len(kb.cards)} cards, {len(golden.cases)} cases{unasked}; nothing to mend")
    return 0


@app.command()
def metrics() -> int:
    """List every metric: what it says, its direction, its source."""
    from tasks import stages

    table = Table("metric", "better", "range", "what it says", "source", box=None, pad_edge=False)
    for part in stages.METRICS.values():
        span = f"{part.low:g} to {part.high:g}"
        name = f"{part.name}@k" if part.at_k else part.name
        table.add_row(name, "higher" if part.higher_is_better else "lower", span, part.summary, part.source)
    _console(sys.stdout).print(table)
    return 0


@baseline_app.command("update", epilog=EXIT_CODES)
def update(
    suite: SuiteFolder,
    reason: Reason = "",
    accept_regression: Annotated[
        bool, typer.Option("--accept-regression", help="Accept a blocked run knowingly; needs a reason.")
    ] = False,
) -> int:
    """Evaluate the full set and accept its scores as the baseline: three files, all or none."""
    from tasks import stages

    if not reason.strip():
        raise InputError([Problem("--reason", 0, 'is missing; say why: --reason "new travel policy, reviewed by ..."')])
    evaluation = _evaluate(suite, False, {})
    _print_verdict(evaluation)
    accepted = stages.write_baseline(evaluation, reason, accept_regression)
    print(f"baseline {accepted.fingerprint} written to {suite}: review it and commit it")
    return 0


@baseline_app.command("show", epilog=EXIT_CODES)
def show(suite: SuiteFolder) -> int:
    """Print what was accepted, when, why, and from what."""
    from tasks import stages

    baseline = stages.read_baseline(stages.load_suite(suite))
    if baseline is None:
        raise InputError([Problem(str(suite), 0, f'has no baseline; next: kbgate baseline update {suite} --reason "..."')])
    print(json.dumps(baseline.summary, indent=2, ensure_ascii=False, sort_keys=True))
    return 0


@baseline_app.command("diff", epilog=EXIT_CODES)
def diff(suite: SuiteFolder, ref: Annotated[str, typer.Option("--ref", help="The commit to compare with.")] = "HEAD") -> int:
    """Compare the baseline in the working tree with a committed one, as a review would read it."""
    from tasks import stages

    settings = stages.load_suite(suite)
    lines = stages.diff_baselines(stages.baseline_at(settings, ref), stages.read_baseline(settings), settings)
    print("\n".join(lines) if lines else f"the baseline is that of {ref}")
    return 0


def _floors(texts: list[str]) -> dict[str, float]:
    floors: dict[str, float] = {}
    problems = []
    for text in texts:
        name, _, value = text.partition("=")
        try:
            floors[name] = float(value)
        except ValueError:
            problems.append(Problem("--floor", 0, f"needs METRIC=NUMBER, found '{text}'"))
    if problems:
        raise InputError(problems)
    return floors


def _evaluate(suite: Path, fast: bool, floors: dict[str, float]) -> Evaluation:
    """Run the exam: as a Prefect flow where PREFECT_API_URL names an API, as plain functions otherwise."""
    from flows import evaluate as exam

    given: dict[str, Any] = {"suite": str(suite), "fast": fast, "floors": floors, "home": str(exam.home())}
    if not os.environ.get("PREFECT_API_URL"):
        return exam.run(**given)
    from flows.publish import run_flow

    return run_flow(exam.evaluate, **given)


def _console(stream: Any) -> Console:
    # Off a terminal a line is as long as it must be: nothing is cut for a width that is not there.
    return Console(file=stream, highlight=False, soft_wrap=not stream.isatty(), width=None if stream.isatty() else 400)


_COLOURS = {"PASS": "green", "WARN": "yellow", "BLOCK": "red", "INCONCLUSIVE": "magenta", "ERROR": "red"}


def _print_verdict(evaluation: Evaluation) -> None:
    """The verdict, its reasons and the gated figures, on standard error, so that --json stays clean."""
    from rich.text import Text

    console, verdict, exam = _console(sys.stderr), evaluation.verdict, evaluation.exam
    head = f"{verdict.name}{' (provisional: the full set decides)' if verdict.provisional else ''}"
    console.print(Text(head, style=f"bold {_COLOURS[verdict.name]}"), Text(f"{exam.suite.name}, {exam.run.mode} set"))
    for reason in verdict.reasons:
        console.print(Text(f"  {reason.level}: {reason.sentence}"))
    figures = exam.comparison.figures
    own = figures[(figures["lane"] == exam.run.method) & (figures["slice"] == "")]
    table = Table("metric", "baseline", "current", "delta", "n", box=None, pad_edge=False)
    for row in rows_of(own):
        if row["n"] and (row["metric"].endswith(f"@{exam.suite.top_k}") or "@" not in row["metric"]):
            figures_of = (_figure(row["baseline"]), _figure(row["current"]), _figure(row["delta"], "+"))
            table.add_row(row["metric"], *figures_of, str(row["n"]))
    console.print(table)
    console.print(Text(f"report: {evaluation.folder / 'report.md'}"))


def _figure(value: float, sign: str = "") -> str:
    return "-" if value != value else f"{value:{sign}.3f}"


def command_line(arguments: list[str]) -> int:
    """Run one command and return its exit code; input errors are sentences, one a line."""
    command = typer.main.get_command(app)
    try:
        code = command.main(args=[a for a in arguments if a != "--debug"], prog_name="kbgate", standalone_mode=False)
        if code is not None and code not in range(5):
            # click turns Ctrl-C into a code of its own, and no code above 4 has a meaning here.
            raise KbgateError("interrupted")
    except KbgateError as error:
        if "--debug" in arguments:
            raise
        return _complain(error)
    except Exception as error:
        show_usage = getattr(error, "show", None)
        if show_usage is None:
            raise
        show_usage()  # click's own usage errors
        return 2
    return code or 0


def _complain(error: KbgateError) -> int:
    names = {1: "REFUSED", 2: "bad input", 4: "ERROR"}
    for line in str(error).split("\n"):
        print(f"kbgate: {names[error.exit_code]}: {line}", file=sys.stderr)
    return error.exit_code
