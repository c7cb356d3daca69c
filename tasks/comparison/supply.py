"""Whose fault is a wrong answer? Where the base supplied the truth it is the model's, and nowhere else."""

from __future__ import annotations

from kbgate.tasks.conclusions import Exam
from kbgate.tasks.errors import counted, named
from kbgate.tasks.metrics import METRICS, figure_at
from kbgate.tasks.tables import EPSILON

_MODEL = "look at the model where an answer is wrong"


def supply(exam: Exam) -> str:
    """Whether the base supplied the truth, so that one looks at the model, or at the base; of every question with gold.

    An excerpt that no longer stands in its card was not supplied, whatever was found; what got no answer is not known.
    """
    contracts = exam.scores.of(exam.run.method)[figure_at(METRICS["contract"], exam.suite.top_k)]
    lost = {gone.case for gone in exam.vanished if gone.excerpt}
    asked = sorted(place.case for place in exam.scores.placements.values() if place.groups)
    unknown = [case for case in asked if not exam.scores.placements[case].outcome.measured]
    missing = [
        case
        for case in asked
        if case not in unknown
        and (case in lost or not contracts.get(case, 0.0) >= exam.suite.pass_mark - EPSILON)  # a NaN is no supply either
    ]
    supplied = len(asked) - len(missing) - len(unknown)
    if not asked:
        return "Whether the base supplied the truth was not measured: no question was asked whose answer it should hold."
    if supplied == len(asked):
        return f"The base supplied the truth: {_MODEL} (n = {supplied})."
    sentences = []
    if missing:
        share = f"{len(missing)} of {counted(len(asked), 'question')}"
        sentences.append(f"The base did not supply the truth for {share}: look at the base there ({named(missing)}).")
    if unknown:
        share = f"{len(unknown)} of {counted(len(asked), 'question')}"
        sentences.append(f"Whether the base supplied the truth is not known for {share}: no answer came ({named(unknown)}).")
    if supplied:
        sentences.append(f"For the other {supplied} it did: {_MODEL}.")
    return " ".join(sentences)
