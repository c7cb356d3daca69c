"""`kbgate explain | drill | inspect | import-labels`: why did it fall, what would nobody notice, and what is in doubt?"""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from kbgate.flows import evaluate as exam
from kbgate.flows.options import EXIT_CODES, SuiteFolder
from kbgate.flows.terminal import console
from kbgate.tasks.errors import InputError, Problem, did_you_mean


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("explain", epilog=EXIT_CODES)(explain)
    app.command("drill", epilog=EXIT_CODES)(drill)
    app.command("inspect", epilog=EXIT_CODES)(inspect)
    app.command("import-labels", epilog=EXIT_CODES)(import_labels)


def explain(
    suite: SuiteFolder,
    case: Annotated[str, typer.Argument(metavar="CASE", help="A case's id.")],
) -> int:
    """Tell the whole story of one case: what it finds, and why each gold it misses is missing, with the proof."""
    from kbgate.tasks import stages
    from kbgate.tasks.diagnosis import explanation

    inputs = exam.load(stages.load_suite(suite), exam.home())
    cases = inputs.golden.cases[inputs.golden.cases["id"] == case].reset_index(drop=True)
    if cases.empty:
        known = did_you_mean(case, inputs.golden.cases["id"])
        raise InputError([Problem(str(suite), 0, f"has no case '{case}'; {known}")])
    material = exam.prepare(inputs, exam.home())
    vectors = stages.embed_queries(inputs.suite, material.model, cases, exam.home() / "vectors")
    day = inputs.suite.day
    for line in explanation.explain_case(inputs, material, cases, vectors, day, exam.home()):
        print(line)
    return 0


def drill(
    suite: SuiteFolder,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Mutants to make.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Which ones.")] = 0,
    cards: Annotated[int | None, typer.Option("--cards", min=2, help="Take so many cards, and the cases they answer.")] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Write every mutant into this file.")] = None,
) -> int:
    """Make known faults on copies of a suite: what does the gate notice, the diagnosis name, and nobody see?"""
    from rich.progress import Progress

    from kbgate.tasks import stages
    from kbgate.tasks.studies import drill as drills

    inputs = exam.load(stages.load_suite(suite), exam.home())
    with Progress(console=console(sys.stderr), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("drill", total=sample)
        found = drills.drill(
            inputs, inputs.suite.day.isoformat(), exam.home(), sample, seed, cards,
            lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    for line in drills.lines_of(found):
        print(line)
    if file is not None:
        stages.write_text(file, json.dumps(dataclasses.asdict(found), indent=2, ensure_ascii=False) + "\n")
    return 1 if any(mutant.missed for mutant in found.mutants) else 0


def inspect(
    suite: SuiteFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print every observation with all its cards.")] = False,
) -> int:
    """Say what became of the cards: rejected, cut off, split, without description, expired, doubled, unreadable."""
    from kbgate.tasks import stages
    from kbgate.tasks.studies import ingestion

    inputs = exam.load(stages.load_suite(suite), exam.home())
    material = exam.prepare(inputs, exam.home())
    chunks = stages.chunk(inputs.suite, inputs.kb)
    found = ingestion.inspect(inputs, material, chunks, inputs.suite.day)
    if as_json:
        print(json.dumps([dataclasses.asdict(observation) for observation in found], indent=2, ensure_ascii=False))
    else:
        for observation in found:
            print(f"{observation.name:<22} {observation.sentence}")
    return 0


def import_labels(
    suite: SuiteFolder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A label_review.csv with yes or no in its column `same`.")],
) -> int:
    """Write every yes of a filled-in label review into golden.jsonl: that card is as good an answer from now on."""
    from kbgate.tasks import stages
    from kbgate.tasks.diagnosis import labels

    inputs = exam.load(stages.load_suite(suite), exam.home())
    found = labels.import_labels(inputs, file)
    for case, card in found.added:
        print(f"{case}: '{card}' is gold too")
    print(f"{len(found.added)} added, {found.refused} refused, {found.open} still open")
    if found.added:
        print(f"next: kbgate evaluate {shlex.quote(str(suite))}; these cases were edited and need a new baseline")
    return 0
