"""On each pull request: the fast subset and the cases the change touches, by the target branch's baseline and gates.

A pull request cannot bless its own regression: what counts as red, and what it is compared with, come from `baseline_ref`.
A red or inconclusive subset is provisional, so the full set decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbgate.flows import evaluate, publish
from kbgate.tasks import stages
from kbgate.tasks.domain import Evaluation, Inputs, Material
from kbgate.tasks.results import PullRequest


def run(suite: str, baseline_ref: str, home: str = ".kbgate") -> PullRequest:
    """Examine a checked-out change against `baseline_ref`; writes comment.md beside the deciding run's report."""
    own = stages.load_suite(Path(suite))
    judged_by = stages.suite_at(own, baseline_ref)
    inputs = evaluate.load(judged_by, Path(home), baseline_ref)
    edits = stages.edits_policy(own, baseline_ref, inputs.baseline)
    material = evaluate.prepare(inputs, Path(home))
    subset = deciding = _subset(inputs, material, Path(home))
    if subset.exit_code != 0:
        deciding = evaluate.examine(inputs, material, inputs.golden.cases, Path(home))
    result = PullRequest(subset, deciding, stages.rejudge(own, deciding) if edits else None, baseline_ref)
    publish.publish(deciding, Path(home))
    publish.publish_comment(result)
    return result


def _subset(inputs: Inputs, material: Material, home: Path) -> Evaluation:
    """The stratified subset, and beside it whatever the change may touch."""
    cases, suite = inputs.golden.cases, inputs.suite
    fast = set(stages.select_fast(cases, suite.fast)["id"])
    vectors = stages.embed_queries(suite, material.model, cases, home / "vectors")
    touched = set(stages.touched_cases(inputs, material, vectors, suite.day)) - fast
    asked = cases[cases["id"].isin(fast | touched)].reset_index(drop=True)
    return evaluate.examine(inputs, material, asked, home, "fast", touched=tuple(sorted(touched)))


def __getattr__(name: str) -> Any:
    if name == "pull_request":
        return publish.as_flow(run, name)
    raise AttributeError(name)
