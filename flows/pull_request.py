"""On each pull request: the fast subset and the cases the change touches, by the target branch's baseline and gates.

A pull request cannot bless its own regression: what counts as red, and what it is compared with, come from `baseline_ref`.
A red or inconclusive subset is provisional, so the full set decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbgate.flows import door
from kbgate.flows.prefect import as_flow, refuse_foreign_flows
from kbgate.flows.publish import publish_pull_request
from kbgate.tasks import exam, stages
from kbgate.tasks.baseline.review import edits_policy, rejudge, suite_at
from kbgate.tasks.clock import Clock
from kbgate.tasks.comparison.wordings import edited_cases
from kbgate.tasks.conclusions import Evaluation, PullRequest
from kbgate.tasks.domain import Inputs, Material, Sample
from kbgate.tasks.inputs.subset import select_fast


def run(suite: str, baseline_ref: str, home: str = "", re_embed: bool = False) -> PullRequest:
    """Evaluate a checked-out change against `baseline_ref`; writes comment.md beside the deciding run's report."""
    refuse_foreign_flows()
    now, place = door.now(), door.home_of(home)
    own = stages.load_suite(Path(suite))
    judged_by = suite_at(own, baseline_ref)
    inputs = exam.load(judged_by, place, baseline_ref)
    edits = edits_policy(own, baseline_ref, inputs.baseline)
    material = exam.prepare(inputs, place, Sample.ALL if re_embed else Sample.EACH_RUN)
    clock = Clock.of(inputs.suite, now)
    subset = deciding = _subset(inputs, material, place, clock)
    if subset.exit_code != 0:
        deciding = exam.evaluate(inputs, material, inputs.golden.cases, place, clock)
    result = PullRequest(subset, deciding, rejudge(own, deciding) if edits else None, baseline_ref)
    publish_pull_request(result, place)
    return result


def _subset(inputs: Inputs, material: Material, home: Path, clock: Clock) -> Evaluation:
    """The stratified subset, and beside it whatever the change may touch."""
    cases = inputs.golden.cases
    fast = select_fast(cases, inputs.suite.fast)
    vectors = exam.embed(inputs, material, cases, home)
    touched = (set(stages.touched_cases(inputs, material, vectors, clock.as_of)) | edited_cases(inputs)) - set(fast)
    asked = {name: case for name, case in cases.items() if name in fast or name in touched}
    return exam.evaluate(inputs, material, asked, home, clock, touched=tuple(sorted(touched)))


def __getattr__(name: str) -> Any:
    if name == "pull_request":
        return as_flow(run, name)
    raise AttributeError(name)
