"""The anchor: the last baseline accepted with --anchor, or the first. Ten small falls must not become a big one unseen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kbgate.tasks.domain import Evaluation, Exam
from kbgate.tasks.errors import Refused
from kbgate.tasks.registry import metric_of
from kbgate.tasks.settings import EPSILON


def refuse_creep(evaluation: Evaluation, anchor: bool, accept_regression: bool) -> None:
    """Raise `Refused` where small falls add up: beyond twice a tolerance since the last baseline accepted with --anchor.

    `anchor`, `accept_regression`: what the person who accepts says. A figure the anchor does not hold (its gate is newer,
    or k is another) needs a new anchor: what cannot be added up must not be taken for no fall.
    """
    exam = evaluation.exam
    if exam.baseline is None or (anchor and accept_regression):
        return
    figures = exam.comparison.figures
    own = figures[(figures["lane"] == exam.run.method) & (figures["slice"] == "")]
    since = dict(zip(own["metric"], own["since_anchor"], strict=True))
    for name, gate in exam.suite.gates.items():
        if gate.tolerance is None or gate.level == "advisory":
            continue
        part, cut = metric_of(name)
        fall = since.get(part.key(cut or exam.suite.top_k), math.nan) * (-1 if part.higher_is_better else 1)
        if math.isnan(fall) and not anchor:
            raise Refused(f"the anchor holds no {name} to add up falls from; make this run the anchor, knowingly: --anchor")
        if fall > 2 * gate.tolerance + EPSILON:
            raise Refused(
                f"{name} is {fall:.3f} worse than the anchor, twice its tolerance of {gate.tolerance:g} is allowed: small "
                "falls add up; to begin anew from here, knowingly: --anchor --accept-regression"
            )


def anchored_by(evaluation: Evaluation, reason: str) -> dict[str, str]:
    """What baseline.json says of the anchor."""
    on, index = evaluation.started.date().isoformat(), evaluation.fingerprints["index"]
    return {"on": on, "reason": reason.strip(), "index": index}


def anchor_of(
    exam: Exam,
    place: Mapping[str, Any],
    scores: Mapping[str, Mapping[str, float]],
    known: Mapping[str, Mapping[str, Any]],
    anchored: bool,
) -> dict[str, float] | None:
    """What a case scored at the anchor, in the figures that have a tolerance; None where it was not the same case then."""
    row = known.get(place["case"])
    if not anchored:
        return row["anchor"] if row and row["hash"] == place["hash"] else None
    own = scores.get(place["case"], {})
    gated = [name for name, gate in exam.suite.gates.items() if gate.tolerance is not None]
    keys = [f"{name}@{exam.suite.top_k}" if f"{name}@{exam.suite.top_k}" in own else name for name in gated]
    return {key: own[key] for key in keys if key in own}
