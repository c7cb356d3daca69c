"""One suite, from its files to a verdict.

`run` is the body, the same with and without Prefect. `kbgate.flows.evaluate.evaluate` is that body as a Prefect flow;
importing it imports Prefect, importing this module does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbgate.flows import door
from kbgate.flows.prefect import as_flow, refuse_foreign_flows
from kbgate.flows.publish import publish
from kbgate.tasks import exam, stages
from kbgate.tasks.clock import Clock
from kbgate.tasks.conclusions import Evaluation
from kbgate.tasks.domain import Sample
from kbgate.tasks.inputs.subset import select_fast

Floors = dict[str, float]


def run(
    suite: str, fast: bool = False, floors: Floors | None = None, home: str = "", at_now: bool = False, re_embed: bool = False
) -> Evaluation:
    """Evaluate one suite folder and write its run's files; returns the evaluation with its verdict.

    `at_now`: validity is judged now, whatever day the suite pins.
    """
    refuse_foreign_flows()
    now, place = door.now(), door.home_of(home)
    inputs = exam.load(stages.load_suite(Path(suite), floors), place)
    cases = inputs.golden.cases
    asked = select_fast(cases, inputs.suite.fast, inputs.baseline) if fast else cases
    material = exam.prepare(inputs, place, Sample.ALL if re_embed else Sample.EACH_RUN)
    clock = Clock.at(now) if at_now else Clock.of(inputs.suite, now)
    evaluation = exam.evaluate(inputs, material, asked, place, clock, touched=() if fast else None)
    publish(evaluation, place)
    return evaluation


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        return as_flow(run, name)
    raise AttributeError(name)
