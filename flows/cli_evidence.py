"""`kbgate verify | calibrate`: is a verdict what its rankings say, and how much is a verdict worth?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from kbgate.flows import door
from kbgate.flows.options import EXIT_CODES, SuiteFolder
from kbgate.flows.terminal import say


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("verify", epilog=EXIT_CODES)(verify)
    app.command("calibrate", epilog=EXIT_CODES)(calibrate)


def verify(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.")],
    suite: Annotated[
        Path | None,
        typer.Option(
            "--suite", help="The suite's folder; found as it was typed for the run, from here or from there, if left out."
        ),
    ] = None,
) -> int:
    """Recompute a run's scores, comparison and verdict from its rankings, and say what its files say otherwise."""
    from kbgate.tasks import exam, stages
    from kbgate.tasks.runs import verification
    from kbgate.tasks.runs.authentication import UNAUTHENTICATED
    from kbgate.tasks.secret import secret

    if secret() is None:
        say(UNAUTHENTICATED, file=sys.stderr)
    document = verification.read_verdict(run)
    settings = stages.load_suite(suite or verification.suite_of_run(run, document), document.inputs.floors)
    settings = settings.model_copy(update={"given": document.inputs.suite})  # sentences name it in commands
    differences = verification.verify(run, document, exam.load(settings, door.home_of()))
    for sentence in differences:
        say(sentence)
    for part in verification.taken_as_written(document):
        say(f"not recomputed: {part}")
    if differences:
        say(f"{len(differences)} differences: the run does not say what its rankings say")
        return 1
    say(f"all {len(document.figures)} figures and the verdict {document.verdict} follow from the rankings of {run}")
    return 0


def calibrate(
    suite: SuiteFolder,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Examinations of the same beside the first.")] = 3,
    write: Annotated[bool, typer.Option("--write", help="Write calibration.json into the suite's folder.")] = False,
) -> int:
    """Say what a verdict of this suite is worth: its noise, its false alarms, the drops it can see; proposes limits."""
    from kbgate.tasks import exam, stages
    from kbgate.tasks.clock import Clock
    from kbgate.tasks.identity import identity_of
    from kbgate.tasks.inputs.subset import select_fast
    from kbgate.tasks.records import write_text
    from kbgate.tasks.runs.history import read_history
    from kbgate.tasks.studies import calibration

    now, inputs = door.now(), exam.load(stages.load_suite(suite), door.home_of())
    material = exam.prepare(inputs, door.home_of())
    cases, settings = inputs.golden.cases, inputs.suite
    vectors = exam.embed(inputs, material, cases, door.home_of())
    fast = select_fast(cases, settings.fast, inputs.baseline)
    history = read_history(door.home_of(), identity_of(settings).keys)
    as_of = Clock.of(settings, now).as_of
    result = calibration.calibrate(inputs, material, vectors, fast, as_of, history, repeats)
    for line in calibration.lines_of(result):
        say(line)
    if write:
        write_text(settings.folder / "calibration.json", json.dumps(calibration.as_json(result), indent=2) + "\n")
    return 0
