"""Rollback: an earlier build is served again, once it holds what it held; one of unknown state sits the exam first."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path

import numpy as np

from kbgate.flows import door
from kbgate.flows.publish import publish
from kbgate.tasks import exam, stages
from kbgate.tasks.clock import Clock
from kbgate.tasks.errors import Refused
from kbgate.tasks.index.store import close_store, read_index
from kbgate.tasks.production.contents import contents_of
from kbgate.tasks.production.places import open_production
from kbgate.tasks.production.pointer import Examined, Production, Target
from kbgate.tasks.production.promotion import begin, roll_back
from kbgate.tasks.retrieval import needs_vectors
from kbgate.tasks.settings import Suite


def run(suite: str, to: str = "", home: str = "") -> Target:
    """Return to a kept build, the last one where `to` is ""; raises `Refused` where it is not what it was."""
    settings, place = stages.load_suite(Path(suite)), door.home_of(home)
    production = open_production(settings, place)
    with production.held():
        now = door.now()
        begin(production, now)
        return roll_back(production, settings, to, now, partial(_examined, production, settings, place, Clock.at(now)))


def _examined(production: Production, suite: Suite, home: Path, clock: Clock, target: Target) -> Target:
    """A build of unknown state, once it is known: whole by the fingerprint in its name, and examined where it never was."""
    build, store = target.build, production.place(target.build)
    contents = contents_of(production, build)
    try:
        index = read_index(store, build)
        if not needs_vectors(suite):
            index = dataclasses.replace(index, vectors=np.zeros((len(index.rows), 0), np.float32))
        material = exam.material_of(suite, index)
        if not build.startswith(f"{production.suite}-{material.fingerprint}-"):
            raise Refused(
                f"{build} is not whole, or was built with other settings or another model: what it holds has the fingerprint "
                f"{material.fingerprint}; production stays as it is"
            )
        if target.verdict is not None:  # let in by an exam, by a kbgate that did not write down what it held
            return target.model_copy(update={"contents": contents})
        inputs = exam.load(suite, home)
        evaluation = exam.evaluate(inputs, material, inputs.golden.cases, home, clock, host=index)
    finally:
        close_store(store)
    publish(evaluation, home)
    if not evaluation.verdict.name.green:
        raise Refused(f"{build} does not pass: {evaluation.name}: {evaluation.summary}; production stays as it is")
    examined = Examined(verdict=evaluation.verdict.name, run=evaluation.run_id, fingerprints=evaluation.fingerprints)
    return target.model_copy(update={"contents": contents, "verdict": examined})
