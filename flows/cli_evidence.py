"""`kbgate verify | calibrate`: is a verdict what its rankings say, and how much is a verdict worth?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kbgate.flows import evaluate as exam
from kbgate.flows.options import EXIT_CODES, SuiteFolder
from kbgate.tasks.errors import InputError, Problem


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("verify", epilog=EXIT_CODES)(verify)
    app.command("calibrate", epilog=EXIT_CODES)(calibrate)


def verify(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.")],
    suite: Annotated[
        Path | None, typer.Option("--suite", help="The suite's folder; as it was typed for the run if left out.")
    ] = None,
) -> int:
    """Recompute a run's scores, comparison and verdict from its rankings, and say what its files say otherwise."""
    from kbgate.tasks import stages

    document = stages.read_verdict(run)
    given = document.get("inputs")
    if not isinstance(given, dict):
        raise InputError([Problem(str(run / "verdict.json"), 0, "says nothing of its inputs; name the folder of a run")])
    floors = {str(name): float(value) for name, value in dict(given.get("floors") or {}).items()}
    settings = stages.load_suite(suite or Path(str(given.get("suite"))), floors)
    differences = stages.verify(run, document, exam.load(settings, exam.home()))
    for sentence in differences:
        print(sentence)
    if differences:
        print(f"{len(differences)} differences: the run does not say what its rankings say")
        return 1
    print(f"all {len(document['figures'])} figures and the verdict {document['verdict']} follow from the rankings of {run}")
    return 0


def calibrate(
    suite: SuiteFolder,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Examinations of the same beside the first.")] = 3,
    write: Annotated[bool, typer.Option("--write", help="Write calibration.json into the suite's folder.")] = False,
) -> int:
    """Say what a verdict of this suite is worth: its noise, its false alarms, the falls it can see; proposes limits."""
    from kbgate.tasks import stages
    from kbgate.tasks.studies import calibration

    inputs = exam.load(stages.load_suite(suite), exam.home())
    material = exam.prepare(inputs, exam.home())
    cases, settings = inputs.golden.cases, inputs.suite
    vectors = stages.embed_queries(settings, material.model, cases, exam.home() / "vectors")
    fast = stages.select_fast(cases, settings.fast)
    lines = stages.read_history(exam.home(), settings.name)
    found = calibration.calibrate(inputs, material, vectors, fast, settings.day, lines, repeats)
    for line in calibration.lines_of(found):
        print(line)
    if write:
        stages.write_text(settings.folder / "calibration.json", json.dumps(calibration.told(found), indent=2) + "\n")
    return 0
