"""The supply contract: does the knowledge base give what [acceptance] demands, whatever the baseline did?"""

from __future__ import annotations

from collections.abc import Iterator

from kbgate.tasks.conclusions import Code, Exam, Level, Reason
from kbgate.tasks.errors import counted, named
from kbgate.tasks.gate import GATED, check
from kbgate.tasks.gate.allowances import unexcused
from kbgate.tasks.metrics import METRICS, figure_at
from kbgate.tasks.settings import Acceptance
from kbgate.tasks.tables import EPSILON


@check("acceptance", level=GATED, excusable=True)
def acceptance(exam: Exam) -> Iterator[Reason]:
    """Quality, failing and noisy share of all cases asked keep what [acceptance] demands; no tier-gold case fails."""
    demands = exam.suite.acceptance
    if demands is None:
        return
    qualities = _values(exam, "quality")
    if not qualities:
        yield Reason("acceptance", Level.INCONCLUSIVE, "acceptance: no case with gold was measured", code=Code.NO_GATES)
        return
    level, n = Level(demands.level), len(qualities)
    quality = sum(qualities.values()) / n
    if quality < demands.quality - EPSILON:
        yield Reason("acceptance", level, f"quality is {quality:.3f}, {demands.quality:g} is demanded, n = {n}")
    failing = sorted(case for case, value in _values(exam, "failing").items() if value > 0)
    if len(failing) / n > demands.failing_share + EPSILON:
        share = f"{counted(len(failing), 'case')} of {n} fail, a share of {demands.failing_share:g} is allowed"
        yield Reason("acceptance", level, f"{share}: {named(failing)}", tuple(failing))
    grave = unexcused(exam, "acceptance", [case for case in failing if case in _curated(exam)])
    if grave:
        sentence = f"{counted(len(grave), 'case')} with a tier-gold answer failing, none may: {named(grave)}"
        yield Reason("acceptance", level, sentence, tuple(grave))
    unexplained = unexcused(exam, "acceptance", [case for case in failing if case not in exam.causes.proven])
    if unexplained:
        why = named(f"{case} ({_why_not(exam, case)})" for case in unexplained)
        sentence = f"{counted(len(unexplained), 'failing case')} without a proven cause or an allowance: {why}"
        yield Reason("acceptance", level, sentence, tuple(unexplained))
    yield from _noise(exam, demands, n)


def _values(exam: Exam, metric: str) -> dict[str, float]:
    """A metric's figure at the verdict's k, by case."""
    return exam.scores.of(exam.run.method)[figure_at(METRICS[metric], exam.suite.top_k)]


def _why_not(exam: Exam, case: str) -> str:
    """Why a failing case has no proven cause, as half a sentence."""
    outcome = exam.scores.placements[case].outcome
    return exam.causes.why_not(case) if outcome.measured else f"its question got no answer: {outcome}"


def _curated(exam: Exam) -> set[str]:
    """Cases with a tier-gold answer, now or when the baseline was accepted."""
    accepted = exam.baseline.cases.values() if exam.baseline else ()
    now = {place.case for place in exam.scores.placements.values() if place.tier_gold}
    return now | {row.id for row in accepted if row.tier_gold}


def _noise(exam: Exam, demands: Acceptance, n: int) -> Iterator[Reason]:
    """Beside how many answers more stands than their ceiling allows, where these are too many, or none was measured."""
    noises, noisy = _values(exam, "noise"), _values(exam, "noisy")
    above = sorted(case for case, value in noisy.items() if value > 0)
    if noisy and len(above) / len(noisy) <= demands.noisy_share + EPSILON:
        return
    measured = "noise was not measured"
    if noisy:
        share = f"{counted(len(above), 'question')} of {len(noisy)} above the ceiling on noise"
        mean = sum(noises.values()) / len(noises)
        measured = f"{share}, a share of {demands.noisy_share:g} is allowed: {named(above)}; mean noise {mean:.3f}"
    why = "" if demands.calibrated else " (advice: [acceptance] calibrated is not set; kbgate calibrate proposes it)"
    level = Level(demands.level) if demands.calibrated else Level.ADVISORY
    yield Reason("acceptance", level, f"{measured}, n = {len(noisy)} of {n}{why}", tuple(above))
