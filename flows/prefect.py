"""What makes a plain body a Prefect flow, and how a flow is called: the only rim beside `tasks.stages`.

Importing this module does not import Prefect.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, TypeVar

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
_MESSAGE = 4000
"""Characters of a state's message that the server keeps."""


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
            result = body(*args, **kwargs)
        _forget_retries()
        if result.exit_code == 0:
            return Completed(name=result.name.capitalize(), message=printable(result.summary)[:_MESSAGE], data=result)
        return Failed(name=_FAILED[result.name], message=printable(result.summary)[:_MESSAGE], data=result)

    # Deployments name the flow by this: `kbgate.flows.nightly.nightly`. Under the body's own name Prefect would find the
    # plain body, make a flow of it, and end a red night Completed.
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
    result = state.data if hasattr(state.data, "exit_code") else state.result(raise_on_failure=False)
    if isinstance(result, BaseException):
        raise result
    if not hasattr(result, "exit_code"):
        raise KbgateError(f"the flow run ended {state.name} without a verdict: {state.message}")
    verdict: R = result
    return verdict
