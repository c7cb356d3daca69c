"""`kbgate nightly | ingested | pull-request | serve`: the moments at which the exam runs by itself."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from kbgate.flows import after_ingest
from kbgate.flows import nightly as nights
from kbgate.flows import pull_request as pull_requests
from kbgate.flows.options import EXIT_CODES, ReEmbed, SuiteFolder
from kbgate.flows.prefect import call
from kbgate.flows.terminal import print_result, say

Folder = Annotated[str, typer.Option("--folder", help="Where suites are looked for.")]


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    commands = (("nightly", nightly), ("ingested", ingested), ("pull-request", pull_request), ("serve", serve))
    for name, command in commands:
        app.command(name, epilog=EXIT_CODES)(command)


def nightly(
    suites: Annotated[list[str] | None, typer.Argument(help="Suite folders; every one under --folder if left out.")] = None,
    folder: Folder = "baselines",
    forget: Annotated[
        list[str] | None, typer.Option("--forget", help="A suite that is gone from the folder and meant to be; repeatable.")
    ] = None,
    re_embed: ReEmbed = False,
) -> int:
    """Evaluate every suite in full; one that errs stops no other. The night is green if all are, and none is missing."""
    given = {"suites": suites or None, "folder": folder, "re_embed": re_embed, "forget": forget}
    night = call(nights, nights.run, **given)
    for row in night.rows:
        say(f"{row.verdict:12} {row.suite}: {row.worst}")
    return night.exit_code


def ingested(
    suite: SuiteFolder,
    batch: Annotated[str, typer.Option("--batch", help="What came in, as its ingest calls it.")] = "",
    ids: Annotated[
        list[str] | None, typer.Option("--ids", help="A card that came in, or several apart by commas; repeatable.")
    ] = None,
    path: Annotated[str, typer.Option("--path", help="Where they came from.")] = "",
) -> int:
    """Tell that something was ingested: emits `kb.ingested` where PREFECT_API_URL is set, runs the flow otherwise."""
    announced = "\n".join(ids or ())
    if api := os.environ.get("PREFECT_API_URL"):
        from kbgate.flows.events import emit, listeners
        from kbgate.tasks import stages

        stages.load_suite(suite)
        # Asked before: whoever comes later does not hear of it.
        who = listeners(api, str(suite))
        event = emit(api, str(suite), {"batch": batch, "ids": announced, "path": path})
        say(f"emitted kb.ingested {event}; {who}")
        return 0
    result = after_ingest.run(str(suite), batch, announced, path)
    print_result(result)
    return result.exit_code


def pull_request(
    suite: SuiteFolder,
    baseline_ref: Annotated[str, typer.Option("--baseline-ref", help="The target branch, such as origin/main.")],
    merged: Annotated[
        bool, typer.Option("--merged", help="Examine what git makes of the change and its target; nothing is checked out.")
    ] = False,
    re_embed: ReEmbed = False,
) -> int:
    """Examine a checked-out change by the target branch's baseline and gates; writes comment.md."""
    given = {"suite": str(suite), "baseline_ref": baseline_ref, "re_embed": re_embed, "merged": merged}
    result = call(pull_requests, pull_requests.run, **given)
    print_result(result)
    say(f"comment: {result.deciding.folder / 'comment.md'}", file=sys.stderr)
    return result.exit_code


def serve(folder: Folder = "baselines") -> int:
    """Serve the four flows from this process, without a worker: nightly at 02:30, and after each `kb.ingested`."""
    from kbgate.flows.serve import serve_all

    serve_all(folder)
    return 0
