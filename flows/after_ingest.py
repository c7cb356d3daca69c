"""After each ingest: did what came in bury an old truth, and which cards were they?

Events come in bursts and twice. Runs of one suite queue up one behind the other, each looks at the newest state, and one
that finds exactly what was judged last ends at once with that verdict, red or green.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from kbgate.flows import door
from kbgate.flows.prefect import as_flow, refuse_foreign_flows
from kbgate.flows.publish import publish
from kbgate.tasks import exam, stages
from kbgate.tasks.clock import Clock
from kbgate.tasks.conclusions import Evaluation
from kbgate.tasks.outcomes import Judgement
from kbgate.tasks.runs.arrivals import announced_ids, arrivals
from kbgate.tasks.runs.standing import already_judged


def run(
    suite: str, batch: str = "", ids: str | list[str] | None = None, path: str = "", home: str = ""
) -> Evaluation | Judgement:
    """Evaluate the full set, unless the last run judged exactly this, and an exam now could come to no other verdict.

    `batch`, `ids`, `path`: what came in, as its ingest calls it; events bring them as text.
    """
    refuse_foreign_flows()
    now, place = door.now(), door.home_of(home)
    inputs = exam.load(stages.load_suite(Path(suite)), place)
    known = {*inputs.kb.cards, *(inputs.baseline.cards if inputs.baseline else ())}
    inputs = dataclasses.replace(inputs, announced=announced_ids(ids, known))
    material = exam.prepare(inputs, place)
    clock = Clock.at(now)  # whatever day the suite pins: what came in is found now
    judged = already_judged(inputs, material, exam.fingerprints_of(inputs, material), clock, place)
    if judged is not None:
        return judged
    evaluation = exam.evaluate(inputs, material, inputs.golden.cases, place, clock)
    ingest = " ".join(part for part in (str(batch or ""), f"({path})" if path else "") if part)
    evaluation = dataclasses.replace(evaluation, arrivals=arrivals(inputs, place, ingest))
    publish(evaluation, place)
    return evaluation


def __getattr__(name: str) -> Any:
    if name == "after_ingest":
        return as_flow(run, name)
    raise AttributeError(name)
