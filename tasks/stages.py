"""One table: every stage, under the name Prefect shows, with its retries and timeout; and the one dispatch.

Inside a Prefect flow run a stage is a task run; anywhere else it is the plain function, and Prefect is not even imported.
Retries are for stages that touch disk or network and nothing else: a verdict is never retried until it is green.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from kbgate.tasks.baseline import files as baseline
from kbgate.tasks.comparison import compare
from kbgate.tasks.diagnosis import diagnosis
from kbgate.tasks.gate.verdict import judge as gate
from kbgate.tasks.index import chunking, confirmation, embedding, models, store
from kbgate.tasks.inputs import cards, checks, golden, suite
from kbgate.tasks.production import promotion
from kbgate.tasks.retrieval import run as retrieval
from kbgate.tasks.runs import runfiles, touched

if TYPE_CHECKING:
    from prefect import Task
    from prefect.client.schemas.objects import State, TaskRun

P = ParamSpec("P")
R = TypeVar("R")


def in_flow_run() -> bool:
    """Whether the caller runs inside a Prefect flow run; false, without importing Prefect, where nobody has."""
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


def stage(name: str, function: Callable[P, R], *, retries: int = 0, timeout: float | None = None) -> Callable[P, R]:
    """A stage: `function` as it is, or as a task run named `name`."""

    @cache
    def as_task() -> Task[P, R]:
        from prefect import task
        from prefect.cache_policies import NO_CACHE

        # NO_CACHE: Prefect would key on source text and inputs, and never see that a file changed.
        return task(
            name=name,
            retries=retries,
            retry_condition_fn=_is_infrastructure,
            timeout_seconds=timeout,
            cache_policy=NO_CACHE,
            persist_result=False,
        )(function)

    @wraps(function)
    def dispatch(*args: P.args, **kwargs: P.kwargs) -> R:
        return _as_task_run(as_task(), args, kwargs) if in_flow_run() else function(*args, **kwargs)

    return dispatch


def _as_task_run(task: Task[P, R], args: tuple[object, ...], kwargs: dict[str, object]) -> R:
    """Call a task with arguments that Prefect does not walk: 10,000 records took it a second a stage.

    `opaque` keeps the edges of the task graph, where `quote` would lose them; what an argument was put together from is
    named beside it, so that the graph still says which stages it came from.
    """
    from prefect.utilities.annotations import opaque

    run: Callable[..., R] = task
    made_of = [opaque(part) for value in (*args, *kwargs.values()) for part in _made_of(value)]
    return run(*map(opaque, args), wait_for=made_of, **{name: opaque(value) for name, value in kwargs.items()})


def _made_of(value: object, depth: int = 2) -> list[object]:
    """The fields of a record, and of records among them: an exam is told its causes after it was scored."""
    if not depth or not is_dataclass(value):
        return []
    parts = [getattr(value, field.name) for field in fields(value)]
    return parts + [inner for part in parts for inner in _made_of(part, depth - 1)]


def _is_infrastructure(_task: Task[P, R], _run: TaskRun, state: State[R]) -> bool:
    """Retry what a disk or a network did, never what the input or the measurement is."""
    try:
        state.result()
    except OSError:
        return True
    except Exception:
        return False
    return False


load_suite = stage("load suite", suite.load_suite)
load_cards = stage("load cards", cards.load_cards, retries=1)
load_golden = stage("load golden set", golden.load_golden, retries=1)
read_baseline = stage("restore baseline", baseline.read_baseline)
check_inputs = stage("check inputs", checks.check_inputs)
chunk = stage("chunk", chunking.chunk, timeout=3600)
identify_model = stage("identify model", models.identify_model, retries=1)
embed_rows = stage("embed", embedding.embed_rows, retries=1, timeout=6 * 3600)
embed_queries = stage("embed questions", embedding.embed_queries, retries=1, timeout=3600)
ingest = stage("ingest", store.ingest, timeout=3600)
retrieve = stage("retrieve", retrieval.retrieve, timeout=3600)
score_and_compare = stage("score and compare", compare.exam_of, timeout=3600)
confirm_vectors = stage("embed a sample again", confirmation.confirm, timeout=6 * 3600)
diagnose = stage("diagnose", diagnosis.diagnose, timeout=3600)
judge = stage("judge", gate)
write_run = stage("write files", runfiles.write_run, retries=1)
find_touched = stage("find touched cases", touched.find_touched, timeout=3600)
promote = stage("move the pointer", promotion.promote)
