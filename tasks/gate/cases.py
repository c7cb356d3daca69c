"""Did a case drop out? A golden case is a test."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.errors import counted, named
from kbgate.tasks.gate import GATED, check
from kbgate.tasks.gate.allowances import unexcused
from kbgate.tasks.gate.gold_texts import offer
from kbgate.tasks.metrics import METRICS, figure_at, figure_of
from kbgate.tasks.results import ChangeKind
from kbgate.tasks.settings import GATED_COUNTS, Gate
from kbgate.tasks.tables import EPSILON


@check("newly_failing", level=GATED, excusable=True, place=2)
def newly_failing(exam: Exam) -> Iterator[Reason]:
    """No case that passed in the baseline fails now, beyond the slack."""
    gate = exam.suite.gates.get("newly_failing")
    failing = unexcused(exam, "newly_failing", _changed(exam, ChangeKind.NEWLY_FAILING, ChangeKind.FAILING_AS_IT_WAS))
    reworded = set(_changed(exam, ChangeKind.FAILING_AS_IT_WAS))
    as_it_was = [case for case in failing if case in reworded]
    passing = _changed(exam, ChangeKind.NEWLY_PASSING)
    beyond = gate is not None and _beyond(gate, len(failing), exam)
    if gate is not None and failing:
        allowed = "" if beyond or gate.ceiling is None else f", a share of {gate.ceiling:g} may"
        sentence = f"{counted(len(failing), 'case')} newly failing{allowed}: {named(failing)}"
        if as_it_was:
            sentence += f"; as the baseline words it, before it was edited: {named(as_it_was)}"
        if len(passing) > len(failing):
            sentence += f"; {len(passing)} newly passing{_knowingly(exam, 'if that is the better index')}"
        yield Reason("newly_failing", _level(gate, beyond), sentence, tuple(failing))
    if gate is not None:
        yield from _slips(exam, gate)


def _slips(exam: Exam, gate: Gate) -> Iterator[Reason]:
    """The cases just below the cut: a few are told, more are as grave as cases that fail."""
    slipped = unexcused(exam, "newly_failing", _changed(exam, ChangeKind.SLIPPED))
    if not slipped:
        return
    accepted = exam.baseline.cases if exam.baseline else {}
    before = sum(name in accepted and accepted[name].slipped for name in slipped)
    earlier = f" ({before} of them in the baseline already)" if before else ""
    sentence = f"{counted(len(slipped), 'case')} slipped just below rank {exam.suite.top_k}{earlier}"
    allowed = _allowed_slips(exam, gate)
    if len(slipped) <= allowed:
        yield Reason("newly_failing", Level.SUPPORTING, f"{sentence}: {named(slipped)}", tuple(slipped))
        return
    level = min(Level(gate.level), Level.SUPPORTING, key=lambda level: level.gravity)
    sentence = f"{sentence}, {allowed} may: {named(slipped)}{_knowingly(exam, 'if that is meant')}"
    yield Reason("newly_failing", level, sentence, tuple(slipped))


def _allowed_slips(exam: Exam, gate: Gate) -> int:
    """How many cases may stand just below the cut: as written, or half of what the contract may lose; one at least."""
    if gate.slips is not None:
        return gate.slips
    contract = figure_at(METRICS["contract"], exam.suite.top_k)
    judged = [(name, line) for name, line in exam.suite.gates.items() if name not in GATED_COUNTS]
    lines = [line for name, line in judged if figure_of(name, exam.suite) == contract and line.level != "advisory"]
    tolerance = max((line.tolerance or 0.0 for line in lines), default=0.0)
    return max(1, int(tolerance / 2 * exam.comparison.figure(exam.run.method, contract).n + EPSILON))


def _knowingly(exam: Exam, condition: str) -> str:
    """How a drop is accepted, as the end of a sentence."""
    command = f'kbgate baseline update {shlex.quote(exam.suite.given)} --accept-regression --reason "..."'
    return offer(exam, f"; {condition}, accept it with: {command}")


@check("unbaselined_failing", level=GATED, excusable=True)
def unbaselined_failing(exam: Exam) -> Iterator[Reason]:
    """No case that is new since the baseline fails; critical where it is a canary or has a tier-gold answer."""
    gate = exam.suite.gates.get("unbaselined_failing")
    failing = exam.comparison.changed(ChangeKind.UNBASELINED_FAILING)
    grave = unexcused(exam, "unbaselined_failing", [c.case.id for c in failing if c.canary or c.tier_gold])
    rest = unexcused(exam, "unbaselined_failing", [c.case.id for c in failing if not (c.canary or c.tier_gold)])
    if grave:
        sentence = f"{counted(len(grave), 'new canary or tier-gold case')} failing: {named(grave)}"
        yield Reason("unbaselined_failing", Level.CRITICAL, sentence, tuple(grave))
    if gate is not None and rest:
        beyond = _beyond(gate, len(rest), exam)
        allowed = "" if beyond or gate.ceiling is None else f", a share of {gate.ceiling:g} may"
        sentence = f"{counted(len(rest), 'case')} new since the baseline and failing{allowed}: {named(rest)}"
        yield Reason("unbaselined_failing", _level(gate, beyond), sentence, tuple(rest))


@check("canaries", level=Level.CRITICAL, excusable=True, place=3)
def canaries(exam: Exam) -> Iterator[Reason]:
    """No canary fails, whatever the baseline says."""
    contracts = exam.scores.of(exam.run.method)[figure_at(METRICS["contract"], exam.suite.top_k)]
    failing = [
        case.id
        for case in exam.asked.values()
        if case.canary and case.kind != "no_match" and contracts.get(case.id, 0.0) < exam.suite.pass_mark - EPSILON
    ]
    failing = unexcused(exam, "canaries", failing)
    if failing:
        sentence = f"{counted(len(failing), 'canary case')} failing: {named(failing)}"
        yield Reason("canaries", Level.CRITICAL, sentence, tuple(failing))


@check("protected", level=Level.CRITICAL)
def protected(exam: Exam) -> Iterator[Reason]:
    """No canary and no tier-gold case was removed or edited since the baseline."""
    if exam.baseline is None:
        return
    rows = exam.baseline.cases
    for verb, cases in (("removed", exam.comparison.removed), ("edited", exam.comparison.edited)):
        kept = [case for case in cases if rows[case].canary or rows[case].tier_gold]
        if kept:
            sentence = f"{counted(len(kept), 'canary or tier-gold case')} {verb} since the baseline: {named(kept)}"
            yield Reason("protected", Level.CRITICAL, sentence, tuple(kept))


@check("removed", level=Level.SUPPORTING)
def removed(exam: Exam) -> Iterator[Reason]:
    """No case that the baseline knows was taken out of the golden set without a new baseline."""
    cases = exam.comparison.removed
    if cases:
        sentence = f"{counted(len(cases), 'case')} of the baseline no longer asked: {named(cases)}"
        yield Reason("removed", Level.SUPPORTING, sentence, tuple(cases))


@check("edited", level=Level.SUPPORTING)
def edited(exam: Exam) -> Iterator[Reason]:
    """No case that the baseline knows asks something else now, or wants another answer, without a new baseline."""
    cases = exam.comparison.edited
    if cases:
        sentence = f"{counted(len(cases), 'case')} edited since the baseline, and not compared with it: {named(cases)}"
        yield Reason("edited", Level.SUPPORTING, sentence, tuple(cases))


@check("relabelled", level=Level.SUPPORTING)
def relabelled(exam: Exam) -> Iterator[Reason]:
    """No case that the baseline knows has other labels (topic, cluster, numeric, attack, intent) without a new baseline."""
    cases = exam.comparison.relabelled
    if cases:
        told = [f"{case} ({', '.join(labels)})" for case, labels in cases.items()]
        sentence = f"{counted(len(cases), 'case')} relabelled, judged in the slices of the baseline: {named(told)}"
        yield Reason("relabelled", Level.SUPPORTING, sentence, tuple(cases))


@check("access_widened", level=Level.SUPPORTING)
def access_widened(exam: Exam) -> Iterator[Reason]:
    """No case whose asker could see no gold in the baseline can see some now."""
    widened = _changed(exam, ChangeKind.ACCESS_WIDENED)
    if widened:
        sentence = f"access was widened: gold that was hidden from its asker in the baseline is visible now in {named(widened)}"
        yield Reason("access_widened", Level.SUPPORTING, sentence, tuple(widened))


def _changed(exam: Exam, *kinds: ChangeKind) -> list[str]:
    return [change.case.id for change in exam.comparison.changed(*kinds)]


def _level(gate: Gate, beyond: bool) -> Level:
    """How grave failing cases are: as the gate says beyond its ceiling, and within it never less than told, never grave."""
    level = Level(gate.level)
    return level if beyond else max(level, Level.SUPPORTING, key=lambda level: level.gravity)


def _beyond(gate: Gate, count: int, exam: Exam) -> bool:
    """Whether so many cases are more than the ceiling allows, as a share of the cases that have gold."""
    total = max(sum(bool(place.ranks) for place in exam.scores.placements.values()), 1)
    return gate.ceiling is None or count / total > gate.ceiling + EPSILON
