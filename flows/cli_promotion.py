"""`kbgate promote | rollback | status | gate`: the door to production."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from kbgate.flows import door
from kbgate.flows import promote as promotions
from kbgate.flows.options import EXIT_CODES, Reason, ReEmbed, SuiteFolder
from kbgate.flows.prefect import call
from kbgate.flows.terminal import print_result, print_verdict, say
from kbgate.tasks.errors import InputError, Problem, named


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for name, command in (("promote", promote), ("rollback", rollback), ("status", status), ("gate", gate)):
        app.command(name, epilog=EXIT_CODES)(command)


def promote(
    suite: SuiteFolder,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Accept the scores as baseline too, unless cases slipped.")
    ] = False,
    reason: Reason = "",
    re_embed: ReEmbed = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Serve from where another suite, or an older kbgate, serves now.")
    ] = False,
) -> int:
    """Build the candidate in production, examine it there, and serve it if it passes."""
    if update_baseline and not reason.strip():
        raise InputError([Problem("--reason", 0, "is missing; --update-baseline needs one")])
    given = {
        "suite": str(suite),
        "update_baseline": update_baseline,
        "reason": reason,
        "re_embed": re_embed,
        "take_over": take_over,
    }
    others = _namesakes(suite)
    result = call(promotions, promotions.run, **given)
    print_verdict(result.evaluation)
    print_result(result)
    say(others, end="", file=sys.stderr)
    return result.exit_code


def _namesakes(suite: Path) -> str:
    """A line for whoever moved a suite, or began its baseline anew: what it served is another suite's, and still served."""
    from kbgate.tasks import stages
    from kbgate.tasks.production.places import namesakes

    others = namesakes(stages.load_suite(suite), door.home_of())
    if not others:
        return ""
    return (
        f"other suites of this name serve from {named(others)}; where this one was moved or begun anew, its readers look "
        "there: name that folder in [production] path, then kbgate promote --take-over\n"
    )


def rollback(
    suite: SuiteFolder, to: Annotated[str, typer.Option("--to", help="A kept build; the last one if left out.")] = ""
) -> int:
    """Serve an earlier build again, if it is what it was; one of unknown state is examined first."""
    from kbgate.flows import rollback as rollbacks

    target = rollbacks.run(str(suite), to)
    say(f"{target.build} is served")
    return 0


def status(suite: SuiteFolder) -> int:
    """Print what is served, since when, by which verdict, and what is kept to return to; exit 1 where it is damaged."""
    from kbgate.tasks import stages
    from kbgate.tasks.production.audit import record
    from kbgate.tasks.production.contents import verify
    from kbgate.tasks.production.places import open_production

    production = open_production(stages.load_suite(suite), door.home_of())
    pointer = production.read()
    with contextlib.suppress(OSError):  # who may not write may still look
        record(production, pointer)
    if pointer.target is None:
        say(f"nothing is served; next: kbgate promote {suite}")
        say(_namesakes(suite), end="")
    else:
        verify(production, pointer.target)
        verdict, contents = pointer.target.verdict, pointer.target.contents
        say(f"served: {pointer.target.build}")
        say(f"  since {pointer.target.promoted}, verdict {verdict.verdict if verdict else 'unknown'}")
        say(f"  at {production.place(pointer.target.build)}, {contents.rows if contents else 'unknown'} rows")
    there = production.builds()
    for old in pointer.previous:
        state = f"promoted {old.promoted}" if old.verdict else "of unknown state: rollback examines it"
        say(f"kept: {old.build}, {state if old.build in there else 'gone'}")
    return 0


def gate(
    suite: SuiteFolder,
    verdict: Annotated[Path, typer.Option("--verdict", help="The verdict.json of a run.")],
    index_fingerprint: Annotated[str, typer.Option("--index-fingerprint", help="Of the index that is to be served.")],
) -> int:
    """Say whether a verdict opens the door for an index: refuses red, fast, foreign, other-policy and stale ones.

    With KBGATE_KEY in the environment it must carry that key's HMAC. Without, its figures are recomputed where its run's
    files stand beside it, and index fingerprint, build and time are taken as it says them.
    """
    from kbgate.tasks import exam, stages
    from kbgate.tasks.gate.policy import policy_fingerprint
    from kbgate.tasks.index.fingerprint import golden_fingerprint
    from kbgate.tasks.production.promotion import check_verdict, refuse_verdict
    from kbgate.tasks.runs.authentication import UNAUTHENTICATED
    from kbgate.tasks.runs.verification import distrust, is_whole
    from kbgate.tasks.schema import Fingerprints
    from kbgate.tasks.secret import secret

    settings = stages.load_suite(suite)
    golden, baseline = stages.load_golden(settings), stages.read_baseline(settings)
    current = Fingerprints(
        index=index_fingerprint,
        golden=golden_fingerprint(golden.cases),
        policy=policy_fingerprint(settings),
        baseline=baseline.fingerprint if baseline else "",
    )
    if secret() is None:
        alone = "" if is_whole(verdict.parent) else "; nor are the figures recomputed: its run's files are not beside it"
        say(f"{UNAUTHENTICATED}{alone}", file=sys.stderr)
    document = check_verdict(verdict, settings, current, door.now())
    against = distrust(verdict.parent, document, lambda: exam.load(settings, door.home_of()))
    if against:
        refuse_verdict(settings, against)
    say(f"open: {document.verdict} of run {document.run}", file=sys.stderr)
    return 0
