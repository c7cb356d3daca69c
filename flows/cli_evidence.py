"""`kbgate verify | calibrate`: is a verdict what its rankings say, and how much is a verdict worth?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.options import EXIT_CODES
from tasks.domain import Inputs
from tasks.errors import InputError, Problem


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("verify", epilog=EXIT_CODES)(verify)


def verify(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder.")],
    suite: Annotated[
        Path | None, typer.Option("--suite", help="The suite's folder; as it was typed for the run if left out.")
    ] = None,
) -> int:
    """Recompute a run's scores, comparison and verdict from its rankings, and say what its files say otherwise."""
    from tasks import stages

    document = stages.read_verdict(run)
    given = document.get("inputs")
    if not isinstance(given, dict):
        raise InputError([Problem(str(run / "verdict.json"), 0, "says nothing of its inputs; name the folder of a run")])
    floors = {str(name): float(value) for name, value in dict(given.get("floors") or {}).items()}
    settings = stages.load_suite(suite or Path(str(given.get("suite"))), floors)
    kb, golden, baseline = stages.load_cards(settings), stages.load_golden(settings), stages.read_baseline(settings)
    differences = stages.verify(run, document, Inputs(settings, kb, golden, baseline))
    for sentence in differences:
        print(sentence)
    if differences:
        print(f"{len(differences)} differences: the run does not say what its rankings say")
        return 1
    print(f"all {len(document['figures'])} figures and the verdict {document['verdict']} follow from the rankings of {run}")
    return 0
