"""Was everything measured, on a knowledge base that is whole?"""

from __future__ import annotations

import math
from collections.abc import Iterator

from kbgate.tasks.domain import Exam, Outcome, Reason
from kbgate.tasks.errors import counted, named
from kbgate.tasks.gate.allowances import unexcused
from kbgate.tasks.registry import METRICS, check
from kbgate.tasks.settings import EPSILON
from kbgate.tasks.tables import REFERENCE

MAX_FAILED = 0.20
"""Share of cases that may time out, raise or be malformed before nothing was measured at all."""


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
        if not unexcused(exam, "vanished_gold", [lost.case]):
            continue
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


@check("leakage", level="critical")
def leakage(exam: Exam) -> Iterator[Reason]:
    """Nobody is given a card they are not entitled to."""
    figures = exam.scores.figures
    leaks = figures[(figures["metric"] == METRICS["leakage"].name) & (figures["value"] > 0)]
    cases = sorted(set(leaks["case"]))
    if cases:
        sentence = f"cards outside the asker's access were returned in {counted(len(cases), 'case')}: {named(cases)}"
        yield Reason("leakage", "critical", sentence, tuple(cases))


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
