"""One table: every stage, under the name Prefect shows, with its retries and timeout; and the one dispatch.

Inside a Prefect flow run a stage is a task run; anywhere else it is the plain function, and Prefect is not even imported.
Retries are for stages that touch disk or network and nothing else: a verdict is never retried until it is green.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from kbgate.tasks import gate, records, registry
from kbgate.tasks.baseline import files as baseline
from kbgate.tasks.baseline import review
from kbgate.tasks.comparison import compare as comparison
from kbgate.tasks.comparison import scoring
from kbgate.tasks.diagnosis import diagnosis, labels
from kbgate.tasks.index import chunking, embedding, fingerprint
from kbgate.tasks.index import provenance as provenance_
from kbgate.tasks.index import store as indexing
from kbgate.tasks.inputs import cards, golden
from kbgate.tasks.inputs import suite as suites
from kbgate.tasks.production import pointer as production
from kbgate.tasks.production import promotion
from kbgate.tasks.retrieval import lexical
from kbgate.tasks.retrieval import run as retrieval
from kbgate.tasks.runs import archive, history, runfiles, verification
from kbgate.tasks.runs import arrivals as arrivals_

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
    def as_task() -> Any:
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
        result: R = as_task()(*args, **kwargs) if in_flow_run() else function(*args, **kwargs)
        return result

    return dispatch


def _is_infrastructure(_task: Any, _run: Any, state: Any) -> bool:
    """Retry what a disk or a network did, never what the input or the measurement is."""
    try:
        state.result()
    except OSError:
        return True
    except Exception:
        return False
    return False


load_suite = stage("load suite", suites.load_suite)
load_cards = stage("load cards", cards.load_cards, retries=1)
load_golden = stage("load golden set", golden.load_golden, retries=1)
read_baseline = stage("restore baseline", baseline.read_baseline)
check_inputs = stage("check inputs", golden.check_inputs)
chunk = stage("chunk", chunking.chunk, timeout=3600)
identify_model = stage("identify model", embedding.identify_model, retries=1)
embed_rows = stage("embed", embedding.embed_rows, retries=1, timeout=6 * 3600)
embed_queries = stage("embed questions", embedding.embed_queries, retries=1, timeout=3600)
ingest = stage("ingest", indexing.ingest, timeout=3600)
retrieve = stage("retrieve", retrieval.retrieve, timeout=3600)
score = stage("score", scoring.score, timeout=3600)
compare = stage("compare", comparison.compare)
judge = stage("judge", gate.judge)
diagnose = stage("diagnose", diagnosis.diagnose, timeout=3600)
write_run = stage("write files", runfiles.write_run, retries=1)
touched_cases = stage("find touched cases", arrivals_.touched_cases)
promote = stage("move the pointer", promotion.promote)

# Too small to be task runs of their own, or not to be run by anyone but the flow itself.
select_fast = golden.select_fast
find_suites = suites.find_suites
build_rows = indexing.build_rows
temporary_store = indexing.temporary_store
reopen = indexing.reopen
golden_fingerprint = fingerprint.golden_fingerprint
index_fingerprint = fingerprint.index_fingerprint
policy_fingerprint = fingerprint.policy_fingerprint
settings_fingerprint = fingerprint.settings_fingerprint
pipeline_of = fingerprint.pipeline_of
provenance_of = provenance_.provenance_of
verdict_document = runfiles.verdict_document
write_review = labels.write_review
keep_cards = archive.keep_cards
append_history = history.append_history
read_history = history.read_history
previous_run = history.previous_run
append_line = records.append_line
write_text = records.write_text
write_baseline = baseline.write_baseline
baseline_at = review.baseline_at
suite_at = review.suite_at
edits_policy = review.edits_policy
rejudge = review.rejudge
diff_baselines = review.diff_baselines
arrivals = arrivals_.arrivals
already_judged = arrivals_.already_judged
announced_ids = arrivals_.announced_ids
summarise = runfiles.summarise
open_production = production.open_production
locked = production.locked
candidate = production.candidate
sweep = production.sweep
roll_back = promotion.roll_back
opens = promotion.opens
may_be_accepted = baseline.may_be_accepted
check_verdict = promotion.check_verdict
METRICS = registry.METRICS
AGGREGATES = registry.AGGREGATES
metric_of = registry.metric_of
read_verdict = verification.read_verdict
verify = verification.verify
VERSIONS = {"chunker": chunking.VERSION, "analyser": lexical.VERSION}
"""Parts of the index fingerprint that no setting shows."""
