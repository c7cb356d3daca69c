"""`kbgate baseline`: what is accepted, when it changed, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kbgate.flows import evaluate as evaluations
from kbgate.flows.options import EXIT_CODES, Reason, ReEmbed, SuiteFolder
from kbgate.flows.prefect import call
from kbgate.flows.terminal import print_verdict, say
from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.printable import printable_json

app = typer.Typer(help="The accepted scores of a suite.", no_args_is_help=True, rich_markup_mode=None)


@app.command("update", epilog=EXIT_CODES)
def update(
    suite: SuiteFolder,
    reason: Reason = "",
    accept_regression: Annotated[
        bool, typer.Option("--accept-regression", help="Accept a blocked run knowingly; needs a reason.")
    ] = False,
    anchor: Annotated[
        bool, typer.Option("--anchor", help="Later baselines may drop from here by twice a tolerance, all together.")
    ] = False,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept", metavar="CASE", help="Replace the row of this case alone, even of a red run; may be repeated."
        ),
    ] = None,
    re_embed: ReEmbed = False,
    finish: Annotated[
        bool,
        typer.Option("--finish", help="Finish an update that was interrupted while its files moved; alone, nothing is asked."),
    ] = False,
) -> int:
    """Evaluate the full set and accept its scores as the baseline: three files, all or none."""
    from kbgate.tasks.baseline.files import write_baseline
    from kbgate.tasks.baseline.single_rows import accept_rows

    if finish:
        return _finish(suite, alone=not (reason or accept_regression or anchor or accept))
    if accept and (accept_regression or anchor):
        raise InputError([Problem("--accept", 0, "accepts single rows; --accept-regression and --anchor accept a whole run")])
    if not reason.strip():
        raise InputError([Problem("--reason", 0, 'is missing; say why: --reason "new travel policy, reviewed by ..."')])
    evaluation = call(evaluations, evaluations.run, suite=str(suite), re_embed=re_embed)
    print_verdict(evaluation)
    accepted = (
        accept_rows(evaluation, list(dict.fromkeys(accept)), reason)
        if accept
        else write_baseline(evaluation, reason, accept_regression, anchor)
    )
    say(f"baseline {accepted.fingerprint} written to {suite}: review it and commit it")
    return 0


def _finish(suite: Path, *, alone: bool) -> int:
    """What an interrupted update left is proven and moved home; exit 0 also where there was nothing left to do."""
    from kbgate.tasks import stages
    from kbgate.tasks.baseline.files import finish_update

    if not alone:
        raise InputError([Problem("--finish", 0, "stands alone: it moves what was accepted already and accepts nothing")])
    accepted = finish_update(stages.load_suite(suite))
    done = f"baseline {accepted.fingerprint} is whole again: review it and commit it" if accepted else "nothing to finish"
    say(done)
    return 0


@app.command("show", epilog=EXIT_CODES)
def show(suite: SuiteFolder) -> int:
    """Print what was accepted, when, why, and from what."""
    from kbgate.tasks import stages

    baseline = stages.read_baseline(stages.load_suite(suite))
    if baseline is None:
        raise InputError([Problem(str(suite), 0, f'has no baseline; next: kbgate baseline update {suite} --reason "..."')])
    summary = baseline.summary.model_dump(mode="json", by_alias=True, exclude_unset=True)
    say(printable_json(json.dumps(summary, indent=2, ensure_ascii=False, sort_keys=True)))
    return 0


@app.command("diff", epilog=EXIT_CODES)
def diff(suite: SuiteFolder, ref: Annotated[str, typer.Option("--ref", help="The commit to compare with.")] = "HEAD") -> int:
    """Compare the baseline in the working tree with a committed one, as a review would read it."""
    from kbgate.tasks import stages
    from kbgate.tasks.baseline.review import baseline_at, diff_baselines

    settings = stages.load_suite(suite)
    mine = stages.read_baseline(settings)
    lines = diff_baselines(baseline_at(settings, ref), mine, settings)
    say("\n".join(lines) if lines else f"the baseline is that of {ref}")
    return 0


@app.command("migrate", epilog=EXIT_CODES)
def migrate(suite: SuiteFolder) -> int:
    """Rewrite a baseline of an older kbgate: the scores stay, what its lines did not keep comes from git."""
    from kbgate.tasks import stages
    from kbgate.tasks.baseline.migration import migrate as rewrite

    baseline, unknown = rewrite(stages.load_suite(suite))
    say(f"baseline {baseline.fingerprint} rewritten in {suite}: review it and commit it")
    for sentence in unknown:
        say(f"not known: {sentence}")
    return 0
