"""What leaves an exam: files, a line of history, and where Prefect runs it, an artifact and a state that says the verdict."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reports.render import render_markdown
from tasks import stages
from tasks.domain import Evaluation
from tasks.errors import KbgateError

_ARTIFACT_LIMIT = 400_000
"""Characters of a report kept as an artifact: beyond, the server refuses its own event; the file has the whole."""


def publish(evaluation: Evaluation, home: Path) -> None:
    """Write a run's files, append it to the history, and show its report in Prefect where Prefect runs it."""
    document = stages.verdict_document(evaluation)
    report = render_markdown(evaluation, document)
    stages.write_run(evaluation, document, report)
    stages.append_history(home, document)
    if stages.in_flow_run():
        _show(evaluation, report)


def _show(evaluation: Evaluation, report: str) -> None:
    from prefect import get_run_logger
    from prefect.artifacts import create_markdown_artifact

    try:
        slug = re.sub(r"[^a-z0-9]+", "-", evaluation.exam.suite.name.lower())
        create_markdown_artifact(report[:_ARTIFACT_LIMIT], key=f"kbgate-{slug}", description=evaluation.verdict.name)
    except Exception as error:  # an artifact that cannot be shown must not change the verdict
        get_run_logger().warning("the report could not be shown as an artifact: %s", error)


def as_flow(body: Callable[..., Evaluation], name: str) -> Any:
    """A plain body as a Prefect flow of that name, whose final state is the verdict: Failed "Blocked", never green by accident.

    No retries: a flow that ends Blocked would run the whole exam again, until it is green.
    """
    from functools import wraps

    from prefect import flow
    from prefect.states import Completed, Failed

    @wraps(body)
    def flow_body(*args: Any, **kwargs: Any) -> Any:
        evaluation = body(*args, **kwargs)
        verdict = evaluation.verdict
        said = "; ".join(reason.sentence for reason in verdict.reasons)[:4000]
        if verdict.exit_code == 0:
            return Completed(name=verdict.name.capitalize(), message=said, data=evaluation)
        states = {"BLOCK": "Blocked", "INCONCLUSIVE": "Inconclusive", "ERROR": "Unmeasured"}
        return Failed(name=states[verdict.name], message=said, data=evaluation)

    return flow(name=name, flow_run_name=f"{name} {{suite}}", retries=0, persist_result=False, validate_parameters=False)(
        flow_body
    )


def run_flow(flow: Any, **parameters: Any) -> Evaluation:
    """Run a flow against the configured Prefect API and return its evaluation; what it raised is raised again."""
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    # The heartbeat thread costs a second at the end of every flow run; it serves runs that outlive their caller.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        state = flow(**parameters, return_state=True)
    result = state.data if isinstance(state.data, Evaluation) else state.result(raise_on_failure=False)
    if isinstance(result, Evaluation):
        return result
    if isinstance(result, BaseException):
        raise result
    raise KbgateError(f"the flow run ended {state.name} without a verdict: {state.message}")
