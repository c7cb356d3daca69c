"""Was everything measured, on a knowledge base that is whole?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.errors import counted, named
from kbgate.tasks.gate import check
from kbgate.tasks.gate.allowances import unexcused
from kbgate.tasks.metrics import METRICS, figure_at
from kbgate.tasks.tables import EPSILON, REFERENCE, Figure

MAX_FAILED = 0.20
"""Share of cases that may time out, raise or be malformed before nothing was measured at all."""


@check("completeness", level=Level.CRITICAL, place=0)
def completeness(exam: Exam) -> Iterator[Reason]:
    """Every case was asked and answered: none missing, timed out, raised or malformed."""
    asked, answers = exam.asked, exam.run.answers
    missing = sorted(set(asked) - set(answers))
    if missing or len(answers) != len(asked) or not asked:
        sentence = f"{len(answers)} answers for {counted(len(asked), 'case')}; missing: {named(missing) or 'none'}"
        yield Reason("completeness", Level.ERROR, sentence, tuple(missing))
        return
    failed = {case: answer for case, answer in answers.items() if not answer.outcome.measured}
    if not failed:
        return
    kinds = Counter(str(answer.outcome) for answer in failed.values())
    listed = ", ".join(f"{count} {outcome}" for outcome, count in sorted(kinds.items()))
    level = Level.ERROR if len(failed) > MAX_FAILED * len(asked) + EPSILON else Level.CRITICAL
    sentence = f"{len(failed)} of {counted(len(asked), 'case')} could not be measured ({listed}): {named(failed)}"
    first = next(iter(failed.values())).detail
    yield Reason("completeness", level, f"{sentence}; first: {first}" if first else sentence, tuple(failed))


@check("finite", level=Level.ERROR)
def finite(exam: Exam) -> Iterator[Reason]:
    """Every figure is a finite number."""
    odd = [cell for table in exam.scores.lanes.values() for cell in table.not_finite()]
    # A figure of the whole run that was made from something and is no number is compared as not measured.
    of_run = [row.figure for row in exam.comparison.figures if row.n and row.current is None]
    if odd or of_run:
        figures = sorted({str(figure) for figure in (*(figure for _, figure in odd), *of_run)})
        cases = tuple(sorted({case for case, _ in odd}))
        yield Reason("finite", Level.ERROR, f"figures that are not finite: {', '.join(figures)}", cases)
    unscored = sorted(set(exam.asked) - set(exam.scores.placements))
    if unscored:
        sentence = f"{counted(len(unscored), 'case')} not scored: {named(unscored)}"
        yield Reason("finite", Level.ERROR, sentence, tuple(unscored))


@check("vanished_gold", level=Level.CRITICAL, excusable=True, place=1)
def vanished_gold(exam: Exam) -> Iterator[Reason]:
    """Every gold card, and every excerpt that is evidence, is still in the knowledge base."""
    by_loss: dict[tuple[str, str], list[str]] = {}
    for lost in exam.vanished:
        if unexcused(exam, "vanished_gold", [lost.case]):
            by_loss.setdefault((lost.card, lost.excerpt), []).append(lost.case)
    for (card, excerpt), cases in sorted(by_loss.items()):
        refusal = exam.kb.refusal(card)
        why = f" (rejected at {refusal})" if refusal else ""
        what = f"evidence '{excerpt[:60]}' gone from card '{card}'" if excerpt else f"card '{card}'{why}"
        sentence = f"gold removed from the knowledge base: {what}, the answer of {named(cases)}"
        yield Reason("vanished_gold", Level.CRITICAL, sentence, tuple(cases))


@check("announced", level=Level.CRITICAL)
def announced(exam: Exam) -> Iterator[Reason]:
    """Every card an ingest says it brought is in the knowledge base."""
    missing = sorted(set(exam.announced) - set(exam.kb.cards))
    if missing:
        sentence = f"{counted(len(missing), 'card')} announced by the ingest and not in the knowledge base: {named(missing)}"
        refusals = [refusal for card in missing if (refusal := exam.kb.refusal(card))]
        sentence += f"; {len(refusals)} of them rejected, the first at {refusals[0]}" if refusals else ""
        yield Reason("announced", Level.CRITICAL, sentence)


@check("leakage", level=Level.CRITICAL)
def leakage(exam: Exam) -> Iterator[Reason]:
    """Nobody is given a card they are not entitled to."""
    figure = Figure(METRICS["leakage"].name)
    cases = sorted({case for table in exam.scores.lanes.values() for case, hits in table[figure].items() if hits > 0})
    if cases:
        sentence = f"cards outside the asker's access were returned in {counted(len(cases), 'case')}: {named(cases)}"
        yield Reason("leakage", Level.CRITICAL, sentence, tuple(cases))


@check("lost_by_index", level=Level.CRITICAL)
def lost_by_index(exam: Exam) -> Iterator[Reason]:
    """No case fails that exact search over the same vectors still passes."""
    contract, mark = figure_at(METRICS["contract"], exam.suite.top_k), exam.suite.pass_mark - EPSILON
    method, exact = (exam.scores.of(lane)[contract] for lane in (exam.run.method, REFERENCE))
    lost = sorted(case for case, value in method.items() if value < mark and exact.get(case, 0.0) >= mark)
    if lost:
        sentence = f"{counted(len(lost), 'case')} lost by the approximate index, found by exact search: {named(lost)}"
        yield Reason("lost_by_index", Level.CRITICAL, sentence, tuple(lost))
