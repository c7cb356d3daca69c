"""What makes a plain body a Prefect flow, and how a flow is called: the only rim beside `tasks.stages`.

Importing this module does not import Prefect.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable
from functools import wraps
from textwrap import shorten
from types import ModuleType
from typing import Any, TypeVar, cast
from uuid import UUID

from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.errors import KbgateError
from kbgate.tasks.outcomes import Result
from kbgate.tasks.printable import printable
from kbgate.tasks.secret import withheld
from kbgate.tasks.stages import in_flow_run

R = TypeVar("R", bound=Result)

_OURS = "ends_with_the_verdict"
"""The mark of a flow whose final state is the verdict."""
_FAILED = {VerdictName.BLOCK: "Blocked", VerdictName.INCONCLUSIVE: "Inconclusive", VerdictName.ERROR: "Unmeasured"}
_MESSAGE = 400
"""Characters of a state's message: the gravest reasons; the report has all."""
_results: dict[UUID, Result] = {}
"""By flow run, what a flow of this process came to, until `call` takes it. A state carries no object: whoever fails to store
or to show one writes the whole of it into the log."""


def refuse_foreign_flows() -> None:
    """A plain body that someone else made a flow of would end Completed whatever its verdict."""
    if in_flow_run():
        from prefect.context import FlowRunContext

        context = FlowRunContext.get()
        if context is None or context.flow is None or not getattr(context.flow.fn, _OURS, False):
            raise KbgateError("this flow would end green whatever its verdict; deploy flows.<name>.<name>, not its body")


def as_flow(body: Callable[..., Result], name: str) -> Any:
    """A plain body as a Prefect flow, whose final state is the verdict: a failed state "Blocked", never green by accident.

    A verdict is final: with retries, a flow that ends Blocked would run the whole exam again, until it is green. So the
    flow has none, and whoever gave its run some (an option, a setting, a deployment) finds them gone once there is a verdict.
    """
    from prefect import flow
    from prefect.states import Completed, Failed

    @wraps(body)
    def flow_body(*args: Any, **kwargs: Any) -> Any:
        with withheld():
            logging.getLogger("prefect.flow_runs").addFilter(_told_in_a_sentence)
            result = body(*args, **kwargs)
        _forget_retries()
        _hand_over(result)
        message = shorten(printable(result.summary), _MESSAGE, placeholder=" ... (the report has all)")
        return (Failed if result.exit_code else Completed)(name=_state_of(result), message=message)

    # Deployments name the flow by this: `kbgate.flows.nightly.nightly`. Under the body's own name Prefect would find the
    # plain body, make a flow of it, and end a red night Completed.
    flow_body.__name__ = flow_body.__qualname__ = name
    flow_body.__dict__[_OURS] = True
    # Until there is a verdict to name it by, a run bears what it was asked to examine.
    given = inspect.signature(body).parameters
    run_name = next((f"{name} {{{what}}}" for what in ("suite", "folder") if what in given), name)
    made = flow(name=name, flow_run_name=run_name, retries=0, persist_result=False, validate_parameters=False)
    return made(flow_body)


def _told_in_a_sentence(record: logging.LogRecord) -> bool:
    """What ended a flow run, without a traceback where it is a verdict or a mistake of ours that a sentence tells."""
    from prefect.exceptions import FailedRun

    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, FailedRun | KbgateError):
        told = "it ends as its verdict says: see the report" if isinstance(error, FailedRun) else printable(str(error))
        record.msg, record.args, record.exc_info, record.exc_text = told, (), None, None
    return True


def _state_of(result: Result) -> str:
    """The name of the state that a flow ends in."""
    return _FAILED[result.name] if result.exit_code else result.name.capitalize()


def _hand_over(result: Result) -> None:
    """Keep a flow's result for whoever called it in this process."""
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        _results[context.flow_run.id] = result


def _forget_retries() -> None:
    from prefect import get_client
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None:
        policy = context.flow_run.empirical_policy.model_copy(update={"retries": 0})
        with get_client(sync_client=True) as client:
            client.update_flow_run(context.flow_run.id, empirical_policy=policy)


def call(module: ModuleType, body: Callable[..., R], **parameters: object) -> R:
    """A flow's result: as a Prefect flow where an API is configured or a flow run goes on, as the plain body otherwise.

    `module`: the flow's own, in which it bears the module's name. What the flow raised is raised again.
    """
    if not in_flow_run() and not os.environ.get("PREFECT_API_URL"):
        return body(**parameters)
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    # The heartbeat thread costs a second at the end of every flow run; it serves runs that outlive their caller.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        state = getattr(module, module.__name__.rpartition(".")[2])(**parameters, return_state=True)
    run = state.state_details.flow_run_id
    result = _results.pop(run, None) if run else None
    if result is None or state.name != _state_of(result):
        # A run that was lost after its verdict ended otherwise than the verdict says.
        raised = state.result(raise_on_failure=False)
        if isinstance(raised, BaseException):
            raise raised
        raise KbgateError(f"the flow run ended {state.name} without a verdict: {state.message}")
    return cast(R, result)
