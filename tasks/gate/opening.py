"""How a verdict begins: its gravest sentence; of a green one that lists no drop, what the gates in force would have seen."""

from __future__ import annotations

from kbgate.tasks.comparison.figures import accepted_labels
from kbgate.tasks.comparison.power import figures_with_limits, smallest_shown, thresholds
from kbgate.tasks.comparison.wordings import follow_renames
from kbgate.tasks.conclusions import Exam, Level, Verdict
from kbgate.tasks.gate import CHECKS, GATED
from kbgate.tasks.metrics import METRICS, figure_at
from kbgate.tasks.results import ChangeKind

_LOSSES = (
    ChangeKind.NEWLY_FAILING,
    ChangeKind.FAILING_AS_IT_WAS,
    ChangeKind.SLIPPED,
    ChangeKind.UNBASELINED_FAILING,
)


def opening(exam: Exam, verdict: Verdict) -> str:
    """The first sentence of a report."""
    if verdict.headline and (verdict.exit_code != 0 or lists_a_drop(exam, verdict)):
        return verdict.headline
    if lists_a_drop(exam, verdict):
        return "nothing dropped beyond what is allowed"
    whole, seen = "no question lost its answer", sight(exam, verdict)
    # The second sentence speaks of questions that lose their answer, so the first one does, whatever else it warns of.
    first = "; ".join(part for part in (verdict.headline, whole if seen or not verdict.headline else "") if part)
    return f"{first}. {seen}" if seen else first


def sight(exam: Exam, verdict: Verdict) -> str:
    """What the gates in force would have seen; "" beside a drop, without a baseline, and where the verdict is not green."""
    baseline = exam.baseline
    if verdict.exit_code != 0 or baseline is None or lists_a_drop(exam, verdict):
        return ""
    rows = follow_renames(baseline, exam.golden)
    compared = {name: exam.asked[name] for name in sorted(set(exam.comparison.common) - set(exam.touched))}
    values = {
        figure: {name: rows[name].scores[str(figure)] for name in compared if str(figure) in rows[name].scores}
        for figure in figures_with_limits(exam.suite)
    }
    parts = {name: accepted_labels(rows[name]) for name in compared}
    share = smallest_shown(thresholds(exam.suite, compared, values, parts, len(exam.kb.cards)))
    if share >= 1:
        return ""
    return (
        f"If {100 * share:.1f} % of all questions like these had lost theirs, a set of this size would have shown it "
        "four times out of five"
    )


def lists_a_drop(exam: Exam, verdict: Verdict) -> bool:
    """Whether a case lost its answer or part of it, or a check that takes its level from the suite has spoken."""
    contract = exam.comparison.figure(exam.run.method, figure_at(METRICS["contract"], exam.suite.top_k))
    told = (r for r in verdict.reasons if r.level != Level.ADVISORY)
    names = (reason.check.partition(".")[0] for reason in told)
    gated = any(name in CHECKS and CHECKS[name].level == GATED for name in names)
    return bool(contract.losses) or gated or bool(exam.comparison.changed(*_LOSSES))
