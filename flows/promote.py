"""Promotion: the candidate is built in production, examined there, and served only if it passes.

Everything happens under the production's lock, so nothing moves between the comparison and the pointer.
"""

from __future__ import annotations

import datetime as dt
from functools import partial
from pathlib import Path
from typing import Any

from kbgate.flows import evaluate, publish
from kbgate.tasks import stages
from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.results import Promotion


def run(suite: str, update_baseline: bool = False, reason: str = "", home: str = ".kbgate") -> Promotion:
    """Build, examine and promote one suite; production is untouched unless the verdict is PASS or WARN."""
    if update_baseline and not reason.strip():
        raise InputError([Problem("reason", 0, "is missing; a new baseline needs one")])
    settings = stages.load_suite(Path(suite))
    production = stages.open_production(settings, Path(home))
    with stages.locked(production):
        stages.sweep(production)
        inputs = evaluate.load(settings, Path(home))
        material = evaluate.prepare(inputs, Path(home))
        host = partial(stages.candidate, production)
        evaluation = evaluate.examine(inputs, material, inputs.golden.cases, Path(home), host=host)
        try:
            publish.publish(evaluation, Path(home))
            if update_baseline and evaluation.exit_code == 0:
                stages.may_be_accepted(evaluation, False)  # said before anything moves
            promotion = stages.promote(production, evaluation, dt.datetime.now(dt.UTC))
        except BaseException:
            stages.sweep(production)  # a candidate that is not served does not stay, one that is served does
            raise
        if update_baseline and promotion.promoted:
            stages.write_baseline(evaluation, reason, False)
    return promotion


def __getattr__(name: str) -> Any:
    if name == "promote":
        return publish.as_flow(run, name)
    raise AttributeError(name)
