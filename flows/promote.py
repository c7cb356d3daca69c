"""Promotion: the candidate is built in production, examined there, and served only if it passes.

Everything happens while the production is held, and the pointer moves only from where it stood before the exam.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import shlex
import time
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from kbgate.flows import door
from kbgate.flows.prefect import as_flow, refuse_foreign_flows
from kbgate.flows.publish import publish
from kbgate.tasks import exam, stages
from kbgate.tasks.baseline.files import may_be_accepted, write_baseline
from kbgate.tasks.clock import Clock
from kbgate.tasks.conclusions import Evaluation
from kbgate.tasks.domain import Sample
from kbgate.tasks.errors import InputError, Problem, Undecided, counted, named
from kbgate.tasks.gate.gold_texts import offer
from kbgate.tasks.outcomes import Promotion
from kbgate.tasks.production.places import candidate, drop, open_production
from kbgate.tasks.production.pointer import Production
from kbgate.tasks.production.promotion import begin
from kbgate.tasks.results import ChangeKind
from kbgate.tasks.runs.verification import read_unbroken


def run(
    suite: str, update_baseline: bool = False, reason: str = "", home: str = "", re_embed: bool = False, take_over: bool = False
) -> Promotion:
    """Build, evaluate and promote one suite; production is untouched unless the verdict is PASS or WARN.

    `take_over`: also where another suite serves. With `update_baseline` its scores are accepted too, unless cases slipped.
    """
    refuse_foreign_flows()
    if update_baseline and not reason.strip():
        raise InputError([Problem("reason", 0, "is missing; a new baseline needs one")])
    settings, place = stages.load_suite(Path(suite)), door.home_of(home)
    production = open_production(settings, place, take_over)
    with production.held():
        now, begun = door.now(), time.monotonic()  # not before it is held: another promotion may hold it for minutes
        pointer = begin(production, now)
        inputs = exam.load(settings, place)
        material = exam.prepare(inputs, place, Sample.ALL if re_embed else Sample.AT_PROMOTION)
        made: list[str] = []
        host = partial(_candidate, production, made)
        clock = Clock.at(now)  # what is served is judged now, whatever day the suite pins
        try:
            evaluation = exam.evaluate(inputs, material, inputs.golden.cases, place, clock, host=host)
            publish(evaluation, place)
            read_unbroken(evaluation.folder)  # what vouches for the build that will be served is there, and ours
            unaccepted = _slips(evaluation) if update_baseline else ""
            if update_baseline and evaluation.exit_code == 0 and not unaccepted:
                may_be_accepted(evaluation, False)  # said before anything moves
            promotion = stages.promote(production, evaluation, _later(now, begun), pointer)
        except Undecided:
            raise  # the pointer may name the candidate
        except BaseException:
            for build in made:  # a candidate that is not served does not stay, one that is served does
                drop(production, build)
            raise
        if update_baseline and promotion.promoted and not unaccepted:
            write_baseline(evaluation, reason, False)
    return dataclasses.replace(promotion, unaccepted=unaccepted)


def _candidate(production: Production, made: list[str], build: str) -> AbstractContextManager[str]:
    """The place of a new build, whose name is written down before it is there."""
    made.append(build)
    return candidate(production, build)


def _slips(evaluation: Evaluation) -> str:
    """The cases that slipped, and how they are accepted; "" where none did."""
    slipped = [change.case.id for change in evaluation.exam.comparison.changed(ChangeKind.SLIPPED)]
    if not slipped:
        return ""
    command = f'kbgate baseline update {shlex.quote(evaluation.exam.suite.given)} --reason "..."'
    how = offer(evaluation.exam, f"; look at them, and accept them with: {command}")
    return f"{counted(len(slipped), 'case')} slipped ({named(slipped)}){how}"


def _later(now: dt.datetime, begun: float) -> dt.datetime:
    """What time it is at the end of an exam: the moment it began, and how long it took."""
    return now + dt.timedelta(seconds=round(time.monotonic() - begun))


def __getattr__(name: str) -> Any:
    if name == "promote":
        return as_flow(run, name)
    raise AttributeError(name)
