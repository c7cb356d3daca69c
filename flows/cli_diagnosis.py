"""`kbgate explain | drill | inspect | import-labels`: why did it drop, what would nobody notice, and what is in doubt?"""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbgate.flows import door
from kbgate.flows.options import EXIT_CODES, SuiteFolder
from kbgate.flows.terminal import console, line, say, table_of
from kbgate.tasks.errors import InputError, Problem, did_you_mean
from kbgate.tasks.printable import printable_json

if TYPE_CHECKING:
    from kbgate.tasks.diagnosis.explanation import Explanation
    from kbgate.tasks.studies.drill import Drill


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
    from kbgate.tasks import exam, stages
    from kbgate.tasks.clock import Clock
    from kbgate.tasks.diagnosis import explanation

    now, inputs = door.now(), exam.load(stages.load_suite(suite), door.home_of())
    cases = inputs.golden.cases
    if case not in cases:
        raise InputError([Problem(str(suite), 0, f"has no case '{case}'; {did_you_mean(case, cases)}")])
    material = exam.prepare(inputs, door.home_of())
    asked = {case: cases[case]}
    vectors = exam.embed(inputs, material, asked, door.home_of())
    as_of = Clock.of(inputs.suite, now).as_of
    _print_explanation(explanation.explain_case(inputs, material, asked, vectors, as_of, door.home_of()))
    return 0


def _print_explanation(explanation: Explanation) -> None:
    """One case: its top k, then each gold it misses with the cause and the evidence in numbers."""
    out = console(sys.stdout)
    out.print(line(f"{explanation.case}: {explanation.query}", style="bold"))
    out.print(line(f"  {explanation.about}; ranks are {explanation.ranks_from}"))
    out.print(line(f"top {explanation.top_k}:"))
    top = ((str(hit.rank), hit.card, ", ".join(hit.marks), hit.title) for hit in explanation.top)
    out.print(table_of(("rank", "card", "", "title"), top))
    for gold in explanation.golds:
        if isinstance(gold, str):
            out.print(line(gold))
            continue
        finding = gold.finding
        proof = "" if finding.cause == "unknown" else f" ({'proven' if finding.proven else 'not proven'})"
        out.print(line(f"missing: {finding.gold}: {gold.title}", style="bold"))
        out.print(line(f"  {finding.cause}{proof}: {finding.sentence}"))
        evidence = ((name, "not found" if value is None else f"{value:g}") for name, value in finding.evidence.items())
        out.print(table_of(("evidence", ""), evidence))
        if gold.above:
            out.print(table_of(("above it", "", "title"), ((card.since, card.card, card.title) for card in gold.above)))


def _print_drill(drill: Drill) -> None:
    """A drill: one row a fault, then what nobody noticed and what nobody would see."""
    from kbgate.tasks.studies.drill import rate, rows_of, summary_lines

    rows = (
        (
            row.fault,
            str(row.made),
            str(row.equivalent),
            rate(row.noticed, row.real),
            rate(row.right, row.noticed),
            ", ".join(f"{cause} {count}" for cause, count in row.causes) if row.fault != "all" else "",
        )
        for row in rows_of(drill)
    )
    console(sys.stdout).print(table_of(("fault", "made", "equivalent", "noticed", "named rightly", "causes named"), rows))
    for sentence in summary_lines(drill):
        say(sentence)


def drill(
    suite: SuiteFolder,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Mutants to make.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Which ones.")] = 0,
    cards: Annotated[int | None, typer.Option("--cards", min=2, help="Take so many cards, and the cases they answer.")] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Write every mutant into this file.")] = None,
) -> int:
    """Make known faults on copies of a suite: what does the gate notice, the diagnosis name, and nobody see?"""
    from rich.progress import Progress

    from kbgate.tasks import exam, stages
    from kbgate.tasks.clock import Clock
    from kbgate.tasks.records import write_text
    from kbgate.tasks.studies import drill as drills

    now, inputs = door.now(), exam.load(stages.load_suite(suite), door.home_of())
    with Progress(console=console(sys.stderr), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("drill", total=sample)
        result = drills.drill(
            inputs, Clock.of(inputs.suite, now).as_of.date().isoformat(), door.home_of(), sample, seed, cards,
            lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    _print_drill(result)
    if file is not None:
        write_text(file, json.dumps(dataclasses.asdict(result), indent=2, ensure_ascii=False) + "\n")
    return 1 if any(mutant.missed for mutant in result.mutants) else 0


def inspect(
    suite: SuiteFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print every observation with all its cards.")] = False,
) -> int:
    """Say what became of the cards: rejected, cut off, split, without description, expired, doubled, unreadable."""
    from kbgate.tasks import exam, stages
    from kbgate.tasks.clock import Clock
    from kbgate.tasks.studies import ingestion

    now, inputs = door.now(), exam.load(stages.load_suite(suite), door.home_of())
    material = exam.prepare(inputs, door.home_of())
    as_of = Clock.of(inputs.suite, now).as_of
    observations = ingestion.inspect(inputs, material, stages.chunk(inputs.suite, inputs.kb), as_of)
    if as_json:
        say(printable_json(json.dumps([dataclasses.asdict(one) for one in observations], indent=2, ensure_ascii=False)))
    else:
        console(sys.stdout).print(table_of(("what", "how it is"), ((one.name, one.sentence) for one in observations)))
    return 0


def import_labels(
    suite: SuiteFolder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A label_review.csv with yes or no in its column `same`.")],
) -> int:
    """Write every yes of a filled-in label review into golden.jsonl: that card is as good an answer from now on."""
    from kbgate.tasks import exam, stages
    from kbgate.tasks.diagnosis import labels

    imported = labels.import_labels(exam.load(stages.load_suite(suite), door.home_of()), file)
    for case, card in imported.added:
        say(f"{case}: '{card}' is gold too")
    say(f"{len(imported.added)} added, {imported.refused} refused, {imported.open} still open")
    if imported.added:
        say(f"next: kbgate evaluate {shlex.quote(str(suite))}; these cases were edited and need a new baseline")
    return 0
