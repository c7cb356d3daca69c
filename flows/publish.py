"""What leaves a flow: files, a line of history, and under Prefect artifacts and an event."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from kbgate.flows.prefect import refuse_foreign_flows
from kbgate.flows.terminal import say
from kbgate.reports.render import render_comment, render_markdown
from kbgate.tasks import stages
from kbgate.tasks.conclusions import Evaluation
from kbgate.tasks.diagnosis.labels import review_of
from kbgate.tasks.identity import EVENTS, Identity, identity_of
from kbgate.tasks.outcomes import Night, PullRequest
from kbgate.tasks.runs.archive import keep_cards
from kbgate.tasks.runs.document import VerdictDocument, verdict_document
from kbgate.tasks.runs.history import append_history
from kbgate.tasks.runs.nights import Roll, append_night

_ARTIFACT_LIMIT = 400_000
"""Characters of a report kept as an artifact: beyond, the server refuses its own event; the file has the whole."""
_SHOWN = {"suite", "run", "build", "mode", "verdict", "exit_code", "code", "fingerprints"}
"""Parts of the verdict that the event carries."""
_REASONS = 20
COMMENT = "comment.md"


def publish(evaluation: Evaluation, home: Path, comment: str = "") -> None:
    """Write a run's files, append it to the history, and show its report in Prefect where Prefect runs it.

    `comment`: of a pull request; it stands in comment.md beside the report.
    """
    document = verdict_document(evaluation)
    report = render_markdown(evaluation, document)
    more = {**review_of(evaluation), **({COMMENT: comment} if comment else {})}
    stages.write_run(evaluation, document, report, more)
    identity = identity_of(evaluation.exam.suite)
    if evaluation.provenance.merged is None:  # what nobody merged yet is no state of the suite that others follow
        append_history(home, identity.key, document)
    keep_cards(home, identity.archive, evaluation.exam.kb.cards)
    if stages.in_flow_run():
        _shown(lambda: _show(document, report, identity))


def publish_pull_request(result: PullRequest, home: Path) -> None:
    """Publish the deciding run with comment.md, which goes to the step summary of GitHub where it runs there."""
    comment = render_comment(result, verdict_document(result.deciding))
    publish(result.deciding, home, comment)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(comment)
        except (OSError, ValueError) as error:
            # A container may be told the name of a file that it does not have. What cannot be shown changes no verdict.
            told = f"the step summary {summary} cannot be written ({error}); {COMMENT} says the same"
            say(f"kbgate: {told}", file=sys.stderr)


def publish_night(night: Night, home: Path, roll: Roll) -> None:
    """Append a night to `nightly.jsonl`, and show it as a table in Prefect where Prefect runs it."""
    refuse_foreign_flows()
    append_night(home, night, roll)
    if stages.in_flow_run():
        from prefect.artifacts import create_table_artifact

        rows = [{"suite": row.suite, "verdict": row.verdict, "worst": row.worst} for row in night.rows]
        _shown(lambda: create_table_artifact(rows, key="kbgate-nightly", description=night.name))


def _show(document: VerdictDocument, report: str, identity: Identity) -> None:
    """The report as an artifact, the run's name and tags, and an event for automations."""
    from prefect import get_client
    from prefect.artifacts import create_markdown_artifact
    from prefect.context import FlowRunContext
    from prefect.events import emit_event

    create_markdown_artifact(report[:_ARTIFACT_LIMIT], key=f"kbgate-{identity.key}", description=document.verdict)
    payload = document.model_dump(mode="json", by_alias=True, include=_SHOWN)
    payload["reasons"] = [reason.sentence for reason in document.reasons[:_REASONS]]
    resource = {"prefect.resource.id": f"{EVENTS}{identity.folder}", "prefect.resource.name": identity.suite}
    emit_event("kbgate.verdict", resource=resource, payload=payload)
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        flow = context.flow.name if context.flow is not None else ""
        name = f"{flow} {identity.key} {document.fingerprints.index[:8]}"
        tags = {*context.flow_run.tags, f"suite:{identity.suite}", f"verdict:{document.verdict}"}
        with get_client(sync_client=True) as client:
            client.update_flow_run(context.flow_run.id, name=name, tags=sorted(tags))


def _shown(show: Callable[[], object]) -> None:
    """What cannot be shown must not change a verdict."""
    try:
        show()
    except Exception as error:
        from prefect import get_run_logger

        get_run_logger().warning("the verdict could not be shown: %s", error)
