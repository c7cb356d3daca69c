"""The gate: every check says nothing or a sentence, and the sentences make the verdict.

A check is one decorated function that looks at the exam and yields `Reason`s. What was not measured is never green: a check
that cannot look says so.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

import pandas as pd

from tasks.comparison import EPSILON
from tasks.domain import Exam, Outcome, Reason, Verdict
from tasks.errors import counted, named
from tasks.registry import CHECKS, METRICS, Metric, check, metric_of
from tasks.settings import GATED_COUNTS, Gate
from tasks.tables import REFERENCE

MAX_FAILED = 0.20
"""Share of cases that may time out, raise or be malformed before nothing was measured at all."""

_VERDICTS = {
    "error": ("ERROR", 4),
    "critical": ("BLOCK", 1),
    "inconclusive": ("INCONCLUSIVE", 3),
    "supporting": ("WARN", 0),
}
"""By the gravest level among the reasons, gravest first; none of these is a PASS."""


def judge(exam: Exam) -> Verdict:
    """The verdict of an exam: every check's sentences, and the gravest level among them."""
    order = [*_VERDICTS, "advisory"]
    found = [reason for rule in CHECKS.values() for reason in rule.look(exam)]
    reasons = tuple(sorted(found, key=lambda r: (order.index(r.level), _PRIORITY.get(r.check, 50), r.check, r.sentence)))
    for level, (name, exit_code) in _VERDICTS.items():
        codes = [reason.code for reason in reasons if reason.level == level]
        if codes:
            provisional = exam.run.mode == "fast" and exit_code != 0
            return Verdict(name, exit_code, reasons, codes[0] if level == "inconclusive" else "", provisional)
    return Verdict("PASS", 0, reasons)


_PRIORITY = {"completeness": 0, "vanished_gold": 1, "newly_failing": 2, "canaries": 3}
"""Whose sentence stands first among equals: the first line of a report is what a woken engineer reads."""


@check("completeness", level="critical")
def completeness(exam: Exam) -> Iterator[Reason]:
    """Every case was asked and answered: none missing, timed out, raised or malformed."""
    asked, answers = list(exam.asked["id"]), exam.run.answers
    answered = set(answers["case"])
    missing = sorted(set(asked) - answered)
    if missing or len(answers) != len(asked) or not asked:
        sentence = f"{len(answers)} answers for {counted(len(asked), 'case')}; missing: {named(missing) or 'none'}"
        yield Reason("completeness", "error", sentence, tuple(missing))
        return
    failed = answers[[not Outcome(outcome).measured for outcome in answers["outcome"]]]
    if failed.empty:
        return
    kinds = ", ".join(f"{count} {outcome}" for outcome, count in sorted(failed["outcome"].value_counts().items()))
    level = "error" if len(failed) > MAX_FAILED * len(asked) + EPSILON else "critical"
    sentence = f"{len(failed)} of {counted(len(asked), 'case')} could not be measured ({kinds}): {named(failed['case'])}"
    first = failed["detail"].iloc[0]
    yield Reason("completeness", level, f"{sentence}; first: {first}" if first else sentence, tuple(failed["case"]))


@check("finite", level="error")
def finite(exam: Exam) -> Iterator[Reason]:
    """Every figure is a finite number."""
    figures = exam.scores.figures
    odd = figures[~figures["value"].map(math.isfinite)]
    if not odd.empty:
        keys = sorted(set(odd["metric"]))
        yield Reason("finite", "error", f"figures that are not finite: {', '.join(keys)}", tuple(sorted(set(odd["case"]))))
    unscored = set(exam.asked["id"]) - set(exam.scores.placements["case"])
    if unscored:
        sentence = f"{counted(len(unscored), 'case')} not scored: {named(sorted(unscored))}"
        yield Reason("finite", "error", sentence, tuple(sorted(unscored)))


@check("vanished_gold", level="critical")
def vanished_gold(exam: Exam) -> Iterator[Reason]:
    """Every gold card, and every excerpt that is evidence, is still in the knowledge base."""
    by_loss: dict[tuple[str, str], list[str]] = {}
    for lost in exam.vanished:
        by_loss.setdefault((lost.card, lost.excerpt), []).append(lost.case)
    for (card, excerpt), cases in sorted(by_loss.items()):
        what = f"evidence '{excerpt[:60]}' gone from card '{card}'" if excerpt else f"card '{card}'"
        sentence = f"gold removed from the knowledge base: {what}, the answer of {named(cases)}"
        yield Reason("vanished_gold", "critical", sentence, tuple(cases))


@check("announced", level="supporting")
def announced(exam: Exam) -> Iterator[Reason]:
    """Every card an ingest says it brought is in the knowledge base."""
    missing = sorted(set(exam.announced) - set(exam.kb.cards["id"]))
    if missing:
        sentence = f"{counted(len(missing), 'card')} announced by the ingest and not in the knowledge base: {named(missing)}"
        yield Reason("announced", "supporting", sentence)


@check("rejected", level="critical")
def rejected(exam: Exam) -> Iterator[Reason]:
    """No card was rejected at ingest."""
    problems = exam.kb.problems
    if problems:
        yield Reason(
            "rejected", "critical", f"{counted(len(problems), 'bad line')} in the knowledge base; first: {problems[0]}"
        )


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


@check("leakage", level="critical")
def leakage(exam: Exam) -> Iterator[Reason]:
    """Nobody is given a card they are not entitled to."""
    figures = exam.scores.figures
    leaks = figures[(figures["metric"] == METRICS["leakage"].name) & (figures["value"] > 0)]
    cases = sorted(set(leaks["case"]))
    if cases:
        sentence = f"cards outside the asker's access were returned in {counted(len(cases), 'case')}: {named(cases)}"
        yield Reason("leakage", "critical", sentence, tuple(cases))


@check("access_widened", level="supporting")
def access_widened(exam: Exam) -> Iterator[Reason]:
    """No case whose asker could see no gold in the baseline can see some now."""
    changes = exam.comparison.changes
    widened = _changed(changes, "access_widened")
    if widened:
        sentence = f"access was widened: gold that was hidden from its asker in the baseline is visible now in {named(widened)}"
        yield Reason("access_widened", "supporting", sentence, tuple(widened))


@check("lost_by_index", level="critical")
def lost_by_index(exam: Exam) -> Iterator[Reason]:
    """No case fails that exact search over the same vectors still passes."""
    key, figures = METRICS["contract"].key(exam.suite.top_k), exam.scores.figures
    own = figures[figures["metric"] == key].pivot(index="case", columns="lane", values="value")
    if REFERENCE not in own.columns:
        return
    mark = exam.suite.pass_mark - EPSILON
    lost = sorted(own.index[(own[exam.run.method] < mark) & (own[REFERENCE] >= mark)])
    if lost:
        sentence = f"{counted(len(lost), 'case')} lost by the approximate index, found by exact search: {named(lost)}"
        yield Reason("lost_by_index", "critical", sentence, tuple(lost))


@check("comparable", level="inconclusive")
def comparable(exam: Exam) -> Iterator[Reason]:
    """There is a baseline, and it measured the same thing."""
    if exam.baseline is None:
        command = f'kbgate baseline update {shlex.quote(exam.suite.given)} --reason "first baseline"'
        sentence = f"no baseline to compare with; read the report, then accept it with: {command}"
        yield Reason("comparable", "inconclusive", sentence, code="no_baseline")
    for sentence in exam.comparison.incomparable:
        yield Reason("comparable", "inconclusive", sentence, code="incomparable")


@check("some_gate", level="inconclusive")
def some_gate(exam: Exam) -> Iterator[Reason]:
    """At least one critical gate looked at where gold stands, for at least one case."""
    for name, gate in _gates(exam):
        if gate.level == "critical" and (name in GATED_COUNTS or METRICS[name.partition("@")[0]].judges_gold):
            key = METRICS["contract"].key(exam.suite.top_k) if name in GATED_COUNTS else _key(exam, name)
            if _figure(exam, key)["n"]:
                return
    sentence = "no critical gate looked at where gold stands: nothing would have stopped a bad index"
    yield Reason("some_gate", "inconclusive", sentence, code="no_gates")


@check("newly_failing", level="gated", looks_at_rankings=True)
def newly_failing(exam: Exam) -> Iterator[Reason]:
    """No case that passed in the baseline fails now, beyond the slack."""
    gate = exam.suite.gates.get("newly_failing")
    changes = exam.comparison.changes
    failing, passing = _changed(changes, "newly_failing"), _changed(changes, "newly_passing")
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


@check("unbaselined_failing", level="gated", looks_at_rankings=True)
def unbaselined_failing(exam: Exam) -> Iterator[Reason]:
    """No case that is new since the baseline fails; critical where it is a canary or has a tier-gold answer."""
    gate = exam.suite.gates.get("unbaselined_failing")
    changes = exam.comparison.changes
    failing = changes[changes["change"] == "unbaselined_failing"]
    grave = failing[failing["canary"].astype(bool) | failing["tier_gold"].astype(bool)]["case"].tolist()
    if grave:
        sentence = f"{counted(len(grave), 'new canary or tier-gold case')} failing: {named(grave)}"
        yield Reason("unbaselined_failing", "critical", sentence, tuple(grave))
    rest = [case for case in failing["case"] if case not in grave]
    if gate is not None and rest and _beyond(gate, len(rest), exam):
        sentence = f"{counted(len(rest), 'case')} new since the baseline and failing: {named(rest)}"
        yield Reason("unbaselined_failing", gate.level, sentence, tuple(rest))


@check("limits", level="gated", looks_at_rankings=True)
def limits(exam: Exam) -> Iterator[Reason]:
    """Every gated metric stays within its tolerance, floor and ceiling."""
    for name, gate in _gates(exam):
        if name in GATED_COUNTS:
            continue
        key = _key(exam, name)
        figure, (part, _) = _figure(exam, key), metric_of(key)
        n, now = int(figure["n"]), figure["current"]
        if n < gate.min_n:
            sentence = (
                f"{key} was measured on n = {n} cases, at least {gate.min_n} are needed"
                if n
                else f"{key}: not measured (n = 0)"
            )
            level = "inconclusive" if gate.level == "critical" else gate.level
            yield Reason(f"limits.{name}", level, sentence, code="underpowered" if level == "inconclusive" else "")
            continue
        for sentence in _broken_limits(key, part, gate, figure, exam):
            yield Reason(f"limits.{name}", gate.level, f"{sentence}, n = {n}")
        if gate.tolerance is not None and exam.baseline and math.isnan(figure["baseline"]) and not exam.comparison.incomparable:
            level = "supporting" if gate.level == "critical" else gate.level
            yield Reason(f"limits.{name}", level, f"{key} {now:.3f} is new: the baseline has no figure, so it was not judged")


def _broken_limits(key: str, part: Metric, gate: Gate, figure: pd.Series, exam: Exam) -> Iterator[str]:
    now, delta = figure["current"], figure["delta"]
    worse = -delta if part.higher_is_better else delta
    if gate.tolerance is not None and worse > gate.tolerance + EPSILON:
        verb = "fell" if part.higher_is_better else "rose"
        change = f"{key} {verb} by {abs(delta):.3f} ({figure['baseline']:.3f} to {now:.3f})"
        yield f"{change}; {gate.tolerance:g} is allowed"
    if gate.floor is not None and now < gate.floor - EPSILON:
        yield f"{key} is {now:.3f}, below its floor of {gate.floor:g}"
    if gate.ceiling is not None and now > gate.ceiling + EPSILON:
        yield f"{key} is {now:.3f}, above its ceiling of {gate.ceiling:g}"


def _gates(exam: Exam) -> list[tuple[str, Gate]]:
    """The suite's gates and the floors of the command line."""
    return [*exam.suite.gates.items(), *((name, Gate(floor=floor)) for name, floor in exam.suite.floors.items())]


def _key(exam: Exam, name: str) -> str:
    part, cut = metric_of(name)
    return part.key(cut or exam.suite.top_k)


def _figure(exam: Exam, key: str) -> pd.Series:
    """The method's figure over all compared cases; over all asked ones where only a limit is to be held."""
    figures = exam.comparison.figures
    own = figures[(figures["lane"] == exam.run.method) & (figures["slice"] == "") & (figures["metric"] == key)]
    return own.iloc[0]


def _changed(changes: pd.DataFrame, kind: str) -> list[str]:
    return changes.loc[changes["change"] == kind, "case"].tolist()


def _beyond(gate: Gate, count: int, exam: Exam) -> bool:
    total = max(len(exam.asked), 1)
    return gate.ceiling is None or count / total > gate.ceiling + EPSILON
