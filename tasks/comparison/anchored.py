"""What was lost since the anchor, over the anchor's own cases: a case keeps its place whatever became of it.

An edited case counts with the worse of its two wordings, one that was taken out with the worst there is, and a new one that
fails as if it had passed: so nothing is gained by taking a failing case out, putting it back, or adding a blank to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kbgate.tasks.comparison.wordings import anchored_cases
from kbgate.tasks.domain import Baseline, Cases
from kbgate.tasks.metrics import METRICS, Part, figure_at, part_of
from kbgate.tasks.results import Earlier
from kbgate.tasks.schema import AnchoredCase
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import EPSILON, Figure, LaneScores


def since_anchor(
    suite: Suite, golden: Cases, baseline: Baseline, scores: LaneScores, earlier: Earlier | None
) -> dict[Figure, float]:
    """The change of each figure that the anchor holds, over the anchor's cases and the new ones that fail.

    `scores`: of every case now. A wording that was not asked counts with the worst: what is not known is no pass.
    """
    cases = anchored_cases(baseline, golden)
    new = _new_and_failing(suite, scores, set(golden) - {now for _, now, _ in cases})
    known = {key for _, _, entry in cases for key in entry.scores}
    return {
        figure: _since(figure, suite, golden, [(now, entry) for _, now, entry in cases if str(figure) in entry.scores], new,
                       scores[figure], reworded(earlier, figure))
        for figure in scores.figures
        if str(figure) in known and part_of(figure).higher_is_better is not None
    }  # fmt: skip


def reworded(earlier: Earlier | None, figure: Figure) -> Mapping[str, float]:
    """A figure by the hash of each earlier wording, without those whose answer is gone."""
    values = earlier.scores.of(earlier.run.method)[figure] if earlier else {}
    return {wording: value for wording, value in values.items() if earlier and wording not in earlier.lost}


def _since(
    figure: Figure,
    suite: Suite,
    golden: Cases,
    anchored: Sequence[tuple[str | None, AnchoredCase]],
    new: Sequence[str],
    values: Mapping[str, float],
    reworded: Mapping[str, float],
) -> float:
    """The mean change of one figure."""
    part, key = part_of(figure), str(figure)
    then = [entry.scores[key] for _, entry in anchored]
    passed = part.high if figure == figure_at(METRICS["contract"], suite.top_k) else math.fsum(then) / len(then)
    changes = [-was for was in then] + [-passed for _ in new]
    for now, entry in anchored:
        worst = _worst(part, entry.scores[key])
        value = worst if now is None else _finite(values.get(now), worst)
        if now is not None and golden[now].hash != entry.hash:
            value = worse(part, value, _finite(reworded.get(entry.hash), worst))
        changes.append(value)
    changes += [worse(part, _finite(values.get(name), _worst(part, passed)), passed) for name in new]
    return math.fsum(changes) / (len(then) + len(new))


def _finite(value: float | None, otherwise: float) -> float:
    return value if value is not None and math.isfinite(value) else otherwise


def _worst(part: Part, was: float) -> float:
    """The worst a figure can be; one that has no end is a whole step worse than it was."""
    worst, step = (part.low, -1.0) if part.higher_is_better else (part.high, 1.0)
    return worst if math.isfinite(worst) else was + step


def worse(part: Part, one: float, other: float) -> float:
    """The worse of two values of a figure."""
    return min(one, other) if part.higher_is_better else max(one, other)


def _new_and_failing(suite: Suite, scores: LaneScores, new: set[str]) -> list[str]:
    contracts = scores[figure_at(METRICS["contract"], suite.top_k)]
    return sorted(name for name in new if name in contracts and contracts[name] < suite.pass_mark - EPSILON)
