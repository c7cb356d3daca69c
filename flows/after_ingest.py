"""After each ingest: did what came in bury an old truth, and which cards were they?

Events come in bursts and twice. Runs of one suite queue up one behind the other, each looks at the newest state, and one
that finds exactly what was judged last ends at once with that verdict, red or green.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from kbgate.flows import evaluate, publish
from kbgate.tasks import stages
from kbgate.tasks.domain import Evaluation
from kbgate.tasks.results import Judgement


def run(
    suite: str, batch: str = "", ids: str | list[str] | None = None, path: str = "", home: str = ".kbgate"
) -> Evaluation | Judgement:
    """Evaluate the full set, unless the last run judged exactly this today.

    `batch`, `ids`, `path`: what came in, as its ingest calls it; events bring them as text.
    """
    inputs = evaluate.load(stages.load_suite(Path(suite)), Path(home))
    inputs = dataclasses.replace(inputs, announced=stages.announced_ids(ids))
    material, day = evaluate.prepare(inputs, Path(home)), inputs.suite.day
    judged = stages.already_judged(inputs, evaluate.fingerprints_of(inputs, material), day, Path(home))
    if judged is not None:
        return judged
    evaluation = evaluate.examine(inputs, material, inputs.golden.cases, Path(home))
    came = " ".join(part for part in (str(batch or ""), f"({path})" if path else "") if part)
    evaluation = dataclasses.replace(evaluation, arrivals=stages.arrivals(inputs, Path(home), came))
    publish.publish(evaluation, Path(home))
    return evaluation


def __getattr__(name: str) -> Any:
    if name == "after_ingest":
        return publish.as_flow(run, name)
    raise AttributeError(name)
