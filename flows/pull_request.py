"""On each pull request: the fast subset and the cases the change touches, by the target branch's baseline and gates.

A pull request cannot bless its own regression: what counts as red, and what it is compared with, come from `baseline_ref`.
A subset is provisional: where it is red, inconclusive or too small, or where exact ranking of every case is, the full set
decides.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from pathlib import Path
from typing import Any

from kbgate.flows import door
from kbgate.flows.prefect import as_flow, refuse_foreign_flows
from kbgate.flows.publish import publish_pull_request
from kbgate.tasks import exam, stages
from kbgate.tasks.baseline.behind import behind
from kbgate.tasks.baseline.checkout import refuse_foreign_files
from kbgate.tasks.baseline.merge import merge_with
from kbgate.tasks.baseline.review import commit_of, edits_policy, rejudge, suite_at, target_suite
from kbgate.tasks.clock import Clock
from kbgate.tasks.comparison.wordings import earlier_wordings
from kbgate.tasks.conclusions import Code, Evaluation, Level, Reason, Verdict, VerdictName
from kbgate.tasks.diagnosis.diagnosis import LIMIT
from kbgate.tasks.domain import Inputs, Material, Mode, Sample
from kbgate.tasks.errors import counted
from kbgate.tasks.inputs.subset import least_compared, select_fast
from kbgate.tasks.outcomes import PullRequest
from kbgate.tasks.schema import Commit, Merged
from kbgate.tasks.settings import Suite


def run(suite: str, baseline_ref: str, home: str = "", re_embed: bool = False, merged: bool = False) -> PullRequest:
    """Evaluate a checked-out change against `baseline_ref`; writes comment.md beside the deciding run's report.

    `merged`: what git makes of the change and `baseline_ref` is examined, without a checkout of it.
    """
    refuse_foreign_flows()
    now, place, sample = door.now(), door.home_of(home), Sample.ALL if re_embed else Sample.EACH_RUN
    own = stages.load_suite(Path(suite))
    refuse_foreign_files(own)
    if not merged:
        missing = behind(own, target_suite(own, baseline_ref), commit_of(own.folder, baseline_ref), baseline_ref)
        return _published(_judged(own, baseline_ref, missing, place, now, sample), place)
    with merge_with(own, baseline_ref) as merge:
        if merge.conflict:
            return _published(_judged(own, baseline_ref, merge.conflict, place, now, sample), place)
        result = _judged(merge.suite, merge.commits.target, "", place, now, sample)
        return _published(_of_a_merge(dataclasses.replace(result, ref=baseline_ref), merge.commits), place)


def _judged(own: Suite, ref: str, missing: str, home: Path, now: dt.datetime, sample: Sample) -> PullRequest:
    """A change judged by what `ref` has; shown only, and not judged, where it lacks something (`missing`: a sentence)."""
    judged_by = suite_at(own, ref)
    inputs = exam.load(judged_by, home, ref)
    edits = edits_policy(own, ref, inputs.baseline)
    material = exam.prepare(inputs, home, sample)
    clock = Clock.of(inputs.suite, now)
    if missing:
        unjudged = _unjudged(inputs, material, home, clock, missing)
        return PullRequest(unjudged, unjudged, None, ref)
    subset, deciding, full = examine(inputs, material, home, clock)
    return PullRequest(subset, deciding, rejudge(own, deciding) if edits else None, ref, full)


def _of_a_merge(result: PullRequest, commits: Merged) -> PullRequest:
    """A result that says it is of a merge, so that nobody takes it for one of what is checked out."""

    def marked(evaluation: Evaluation) -> Evaluation:
        where = {"commit": Commit(hash=commits.change, dirty=False), "merged": commits}
        return dataclasses.replace(evaluation, provenance=evaluation.provenance.model_copy(update=where))

    return dataclasses.replace(result, subset=marked(result.subset), deciding=marked(result.deciding))


def _published(result: PullRequest, home: Path) -> PullRequest:
    publish_pull_request(result, home)
    return result


def _unjudged(inputs: Inputs, material: Material, home: Path, clock: Clock, missing: str) -> Evaluation:
    """The subset of a branch that is behind its target: shown, and not judged, since it lacks what was accepted there."""
    asked = select_fast(inputs.golden.cases, inputs.suite.fast, inputs.baseline)
    evaluation = exam.evaluate(inputs, material, asked, home, clock, touched=(), limit=0)
    reason = Reason("behind", Level.INCONCLUSIVE, missing, code=Code.BEHIND)
    return dataclasses.replace(evaluation, verdict=Verdict(VerdictName.INCONCLUSIVE, (reason,), Code.BEHIND, provisional=True))


def examine(
    inputs: Inputs, material: Material, home: Path, clock: Clock, host: exam.Host | None = None, limit: int = LIMIT
) -> tuple[Evaluation, Evaluation, str]:
    """The stratified subset beside whatever the change touches; the evaluation that decides; why that is the full set, or "".

    A subset decides only where it is green, compared enough, and exact ranking of every case is green as well.
    """
    cases, baseline = inputs.golden.cases, inputs.baseline
    reworded = earlier_wordings(cases, baseline, Mode.FULL, inputs.judges_edits)
    vectors = exam.embed(inputs, material, cases, home)
    then = exam.embed(inputs, material, reworded, home) if reworded else None
    touched = stages.find_touched(inputs, material, vectors, clock, then)
    if touched.all:
        whole = exam.evaluate(inputs, material, cases, home, clock, host=host, limit=limit)
        return whole, whole, touched.all
    fast = select_fast(cases, inputs.suite.fast, baseline)
    beside = tuple(sorted(set(touched.cases) - set(fast)))
    asked = {name: case for name, case in cases.items() if name in fast or name in beside}
    subset = exam.evaluate(inputs, material, asked, home, clock, host=host, touched=beside, limit=limit)
    compared, least = len(set(subset.exam.comparison.common) & set(fast)), least_compared(inputs.suite.fast, baseline)
    if subset.exit_code != 0:
        why = f"the fast subset was {subset.name}"
    elif compared < least:
        why = f"the fast subset held {counted(compared, 'case')} against the baseline, and {least} are needed"
    else:
        return subset, subset, ""
    return subset, exam.evaluate(inputs, material, cases, home, clock, host=host, limit=limit), why


def __getattr__(name: str) -> Any:
    if name == "pull_request":
        return as_flow(run, name)
    raise AttributeError(name)
