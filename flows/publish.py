"""What leaves a flow: files, a line of history, and under Prefect artifacts, an event and a state that says the verdict."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from kbgate.reports.render import render_comment, render_markdown
from kbgate.tasks import stages
from kbgate.tasks.domain import Evaluation
from kbgate.tasks.errors import KbgateError
from kbgate.tasks.results import PullRequest, Result, Summary

_ARTIFACT_LIMIT = 400_000
"""Characters of a report kept as an artifact: beyond, the server refuses its own event; the file has the whole."""
_OURS = "ends_with_the_verdict"
"""The mark of a flow whose final state is the verdict."""
_FAILED = {"BLOCK": "Blocked", "INCONCLUSIVE": "Inconclusive", "ERROR": "Unmeasured"}


def publish(evaluation: Evaluation, home: Path) -> None:
    """Write a run's files, append it to the history, and show its report in Prefect where Prefect runs it."""
    document = stages.verdict_document(evaluation)
    report = render_markdown(evaluation, document)
    stages.write_run(evaluation, document, report)
    stages.write_review(evaluation)
    stages.append_history(home, document)
    stages.keep_cards(home, evaluation.exam.suite.name, evaluation.exam.kb.cards)
    if stages.in_flow_run():
        _shown(lambda: _show(evaluation, document, report))


def publish_comment(result: PullRequest) -> None:
    """Write comment.md beside the deciding run's report, and to the step summary of GitHub where it runs there."""
    comment = render_comment(result, stages.verdict_document(result.deciding))
    stages.write_text(result.deciding.folder / "comment.md", comment)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(comment)


def publish_summary(summary: Summary, home: Path) -> None:
    """Append a night to `nightly.jsonl`, and show it as a table in Prefect where Prefect runs it."""
    refuse_foreign_flows()
    rows = [vars(row) for row in summary.rows]
    stages.append_line(home / "nightly.jsonl", {"verdict": summary.name, "rows": rows})
    if stages.in_flow_run():
        from prefect.artifacts import create_table_artifact

        _shown(lambda: create_table_artifact(rows, key="kbgate-nightly", description=summary.name))


def _show(evaluation: Evaluation, document: dict[str, Any], report: str) -> None:
    """The report as an artifact, the run's name and tags, and an event for automations."""
    from prefect import get_client
    from prefect.artifacts import create_markdown_artifact
    from prefect.context import FlowRunContext
    from prefect.events import emit_event

    suite = evaluation.exam.suite.name
    create_markdown_artifact(report[:_ARTIFACT_LIMIT], key=f"kbgate-{_slug(suite)}", description=evaluation.name)
    payload = {
        name: document[name] for name in ("suite", "run", "build", "mode", "verdict", "exit_code", "code", "fingerprints")
    }
    payload["reasons"] = [reason["sentence"] for reason in document["reasons"][:20]]
    emit_event("kbgate.verdict", resource={"prefect.resource.id": f"kbgate.suite.{suite}"}, payload=payload)
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        flow = context.flow.name if context.flow is not None else ""
        name = f"{flow} {suite} {evaluation.fingerprints['index'][:8]}"
        tags = {*context.flow_run.tags, f"suite:{suite}", f"verdict:{evaluation.name}"}
        with get_client(sync_client=True) as client:
            client.update_flow_run(context.flow_run.id, name=name, tags=sorted(tags))


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower())


def refuse_foreign_flows() -> None:
    """A plain body that someone else made a flow of would end Completed whatever its verdict."""
    if stages.in_flow_run():
        from prefect.context import FlowRunContext

        context = FlowRunContext.get()
        if context is None or context.flow is None or not getattr(context.flow.fn, _OURS, False):
            raise KbgateError("this flow would end green whatever its verdict; deploy flows.<name>.<name>, not its body")


def _shown(show: Callable[[], Any]) -> None:
    """What cannot be shown must not change a verdict."""
    try:
        show()
    except Exception as error:
        from prefect import get_run_logger

        get_run_logger().warning("the verdict could not be shown: %s", error)


def as_flow(body: Callable[..., Result], name: str) -> Any:
    """A plain body as a Prefect flow, whose final state is the verdict: a failed state "Blocked", never green by accident.

    A verdict is final: with retries, a flow that ends Blocked would run the whole exam again, until it is green. So the
    flow has none, and whoever gave its run some (an option, a setting, a deployment) finds them gone once there is a verdict.
    """
    from prefect import flow
    from prefect.states import Completed, Failed

    @wraps(body)
    def flow_body(*args: Any, **kwargs: Any) -> Any:
        result = body(*args, **kwargs)
        said = result.said[:4000]
        _forget_retries()
        if result.exit_code == 0:
            return Completed(name=result.name.capitalize(), message=said, data=result)
        return Failed(name=_FAILED[result.name], message=said, data=result)

    # Deployments name the flow by this: `kbgate.flows.nightly.nightly`. Under the body's own name Prefect would find the plain
    # body, make a flow of it, and end a red night Completed.
    flow_body.__name__ = flow_body.__qualname__ = name
    flow_body.__dict__[_OURS] = True
    # Until there is a verdict to name it by, a run bears what it was asked to examine.
    run_name = f"{name} {{suite}}" if "suite" in inspect.signature(body).parameters else None
    made = flow(name=name, flow_run_name=run_name, retries=0, persist_result=False, validate_parameters=False)
    return made(flow_body)


def _forget_retries() -> None:
    from prefect import get_client
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        policy = context.flow_run.empirical_policy.model_copy(update={"retries": 0})
        with get_client(sync_client=True) as client:
            client.update_flow_run(context.flow_run.id, empirical_policy=policy)


def call(module: ModuleType, name: str, **parameters: Any) -> Any:
    """A flow's result: as a Prefect flow where an API is configured or a flow run goes on, as the plain body otherwise.

    What the flow raised is raised again.
    """
    if not stages.in_flow_run() and not os.environ.get("PREFECT_API_URL"):
        return module.run(**parameters)
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    # The heartbeat thread costs a second at the end of every flow run; it serves runs that outlive their caller.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        state = getattr(module, name)(**parameters, return_state=True)
    result = state.data if hasattr(state.data, "exit_code") else state.result(raise_on_failure=False)
    if isinstance(result, BaseException):
        raise result
    if not hasattr(result, "exit_code"):
        raise KbgateError(f"the flow run ended {state.name} without a verdict: {state.message}")
    return result
