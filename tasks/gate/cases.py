"""Did a case fall? A golden case is a test."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pandas as pd

from kbgate.tasks.domain import Exam, Reason
from kbgate.tasks.errors import counted, named
from kbgate.tasks.gate.allowances import unexcused
from kbgate.tasks.registry import METRICS, check
from kbgate.tasks.settings import EPSILON, Gate


@check("newly_failing", level="gated")
def newly_failing(exam: Exam) -> Iterator[Reason]:
    """No case that passed in the baseline fails now, beyond the slack."""
    gate = exam.suite.gates.get("newly_failing")
    changes = exam.comparison.changes
    failing = unexcused(exam, "newly_failing", _changed(changes, "newly_failing"))
    passing = _changed(changes, "newly_passing")
    if gate is not None and failing and _beyond(gate, len(failing), exam):
        sentence = f"{counted(len(failing), 'case')} newly failing: {named(failing)}"
        if len(passing) > len(failing):
            command = f'kbgate baseline update {shlex.quote(exam.suite.given)} --accept-regression --reason "..."'
            sentence += f"; {len(passing)} newly passing; if that is the better index, accept it with: {command}"
        yield Reason("newly_failing", gate.level, sentence, tuple(failing))
    slipped = _changed(changes, "slipped")
    if gate is not None and slipped:
        sentence = f"{counted(len(slipped), 'case')} slipped just below rank {exam.suite.top_k}: {named(slipped)}"
        yield Reason("newly_failing", "supporting", sentence, tuple(slipped))


@check("unbaselined_failing", level="gated")
def unbaselined_failing(exam: Exam) -> Iterator[Reason]:
    """No case that is new since the baseline fails; critical where it is a canary or has a tier-gold answer."""
    gate = exam.suite.gates.get("unbaselined_failing")
    changes = exam.comparison.changes
    failing = changes[changes["change"] == "unbaselined_failing"]
    grave = failing[failing["canary"].astype(bool) | failing["tier_gold"].astype(bool)]["case"].tolist()
    rest = unexcused(exam, "unbaselined_failing", [case for case in failing["case"] if case not in grave])
    grave = unexcused(exam, "unbaselined_failing", grave)
    if grave:
        sentence = f"{counted(len(grave), 'new canary or tier-gold case')} failing: {named(grave)}"
        yield Reason("unbaselined_failing", "critical", sentence, tuple(grave))
    if gate is not None and rest and _beyond(gate, len(rest), exam):
        sentence = f"{counted(len(rest), 'case')} new since the baseline and failing: {named(rest)}"
        yield Reason("unbaselined_failing", gate.level, sentence, tuple(rest))


@check("canaries", level="critical")
def canaries(exam: Exam) -> Iterator[Reason]:
    """No canary fails, whatever the baseline says."""
    key = METRICS["contract"].key(exam.suite.top_k)
    own = exam.scores.figures[(exam.scores.figures["lane"] == exam.run.method) & (exam.scores.figures["metric"] == key)]
    found = dict(zip(own["case"], own["value"], strict=True))
    birds = exam.asked[exam.asked["canary"].astype(bool)]
    failing = [
        case
        for case, kind in zip(birds["id"], birds["kind"], strict=True)
        if kind != "no_match" and found.get(case, 0.0) < exam.suite.pass_mark - EPSILON
    ]
    failing = unexcused(exam, "canaries", failing)
    if failing:
        yield Reason(
            "canaries", "critical", f"{counted(len(failing), 'canary case')} failing: {named(failing)}", tuple(failing)
        )


@check("protected", level="critical")
def protected(exam: Exam) -> Iterator[Reason]:
    """No canary and no tier-gold case was removed or edited since the baseline."""
    if exam.baseline is None:
        return
    rows = exam.baseline.cases
    for verb, cases in (("removed", exam.comparison.removed), ("edited", exam.comparison.edited)):
        kept = [case for case in cases if rows[case]["canary"] or rows[case]["tier_gold"]]
        if kept:
            sentence = f"{counted(len(kept), 'canary or tier-gold case')} {verb} since the baseline: {named(kept)}"
            yield Reason("protected", "critical", sentence, tuple(kept))


@check("removed", level="supporting")
def removed(exam: Exam) -> Iterator[Reason]:
    """No case that the baseline knows was taken out of the golden set without a new baseline."""
    cases = exam.comparison.removed
    if cases:
        sentence = f"{counted(len(cases), 'case')} of the baseline no longer asked: {named(cases)}"
        yield Reason("removed", "supporting", sentence, tuple(cases))


@check("access_widened", level="supporting")
def access_widened(exam: Exam) -> Iterator[Reason]:
    """No case whose asker could see no gold in the baseline can see some now."""
    changes = exam.comparison.changes
    widened = _changed(changes, "access_widened")
    if widened:
        sentence = f"access was widened: gold that was hidden from its asker in the baseline is visible now in {named(widened)}"
        yield Reason("access_widened", "supporting", sentence, tuple(widened))


def _changed(changes: pd.DataFrame, kind: str) -> list[str]:
    return changes.loc[changes["change"] == kind, "case"].tolist()


def _beyond(gate: Gate, count: int, exam: Exam) -> bool:
    """Whether so many cases are more than the ceiling allows, as a share of the cases that have gold."""
    total = max(int(exam.scores.placements["ranks"].map(bool).sum()), 1)
    return gate.ceiling is None or count / total > gate.ceiling + EPSILON
