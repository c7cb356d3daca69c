"""The supply contract: does the knowledge base give what [acceptance] demands, whatever the baseline did?"""

from __future__ import annotations

from collections.abc import Iterator

from kbgate.tasks.domain import Exam, Reason
from kbgate.tasks.errors import counted, named
from kbgate.tasks.gate.allowances import unexcused
from kbgate.tasks.registry import check
from kbgate.tasks.settings import EPSILON


@check("acceptance", level="gated")
def acceptance(exam: Exam) -> Iterator[Reason]:
    """Quality, failing share and noise over every case asked keep what [acceptance] demands; no tier-gold case fails."""
    demands = exam.suite.acceptance
    if demands is None:
        return
    own = exam.scores.figures[exam.scores.figures["lane"] == exam.run.method]
    of = {key: own[own["metric"] == f"{key}@{exam.suite.top_k}"] for key in ("quality", "failing", "noise")}
    if of["quality"].empty:
        yield Reason("acceptance", "inconclusive", "acceptance: no case with gold was measured", code="no_gates")
        return
    quality, n = of["quality"]["value"].mean(), len(of["quality"])
    if quality < demands.quality - EPSILON:
        yield Reason("acceptance", demands.level, f"quality is {quality:.3f}, {demands.quality:g} is demanded, n = {n}")
    failing = sorted(of["failing"].loc[of["failing"]["value"] > 0, "case"])
    if len(failing) / n > demands.failing_share + EPSILON:
        share = f"{counted(len(failing), 'case')} of {n} fail, a share of {demands.failing_share:g} is allowed"
        yield Reason("acceptance", demands.level, f"{share}: {named(failing)}", tuple(failing))
    placed = exam.scores.placements
    known = exam.baseline.cases if exam.baseline else {}
    curated = {case for case, row in known.items() if row["tier_gold"]}
    curated |= set(placed.loc[placed["tier_gold"].astype(bool), "case"])
    grave = unexcused(exam, "acceptance", [case for case in failing if case in curated])
    if grave:
        sentence = f"{counted(len(grave), 'case')} with a tier-gold answer failing, none may: {named(grave)}"
        yield Reason("acceptance", demands.level, sentence, tuple(grave))
    unexplained = unexcused(exam, "acceptance", [case for case in failing if case not in exam.explained])
    if unexplained:
        sentence = f"{counted(len(unexplained), 'failing case')} without a proven cause or an allowance: {named(unexplained)}"
        yield Reason("acceptance", "supporting", sentence, tuple(unexplained))
    noise = of["noise"]["value"]
    if noise.empty or noise.mean() > demands.noise + EPSILON:
        said = f"noise is {noise.mean():.3f}, {demands.noise:g} is allowed" if len(noise) else "noise was not measured"
        level = demands.level if demands.calibrated else "advisory"
        why = "" if demands.calibrated else " (advice: [acceptance] calibrated is not set)"
        yield Reason("acceptance", level, f"{said}, n = {len(noise)} of {n}{why}")
