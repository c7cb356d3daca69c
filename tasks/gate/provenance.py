"""Are rankings still made as in the baseline? Advice: a report that is green says so too."""

from __future__ import annotations

from collections.abc import Iterator

from kbgate.tasks.conclusions import Exam, Level, Reason
from kbgate.tasks.gate import check
from kbgate.tasks.index.fingerprint import changed_pipeline, pipeline_of


@check("settings_changed", level=Level.ADVISORY)
def settings_changed(exam: Exam) -> Iterator[Reason]:
    """Method, chunker, prefixes, model and its weights are the baseline's; where one is not, it is named."""
    if exam.baseline is None:
        return
    then, now = exam.baseline.summary.provenance, exam.provenance
    changed = changed_pipeline(then.pipeline, now.pipeline if now else pipeline_of(exam.suite))
    differences = [f"{name} was {was!r} and is {value!r}" for name, (was, value) in changed.items()]
    weights = (then.model.weights, now.model.weights if now else "")
    if all(weights) and weights[0] != weights[1] and "embedding.model" not in changed:
        differences.append(f"the weights of the model were {weights[0][:12]} and are {weights[1][:12]}")
    if differences:
        sentence = f"rankings are not made as in the baseline: {', '.join(differences)}"
        yield Reason("settings_changed", Level.ADVISORY, sentence)
