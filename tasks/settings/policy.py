"""The tables of suite.toml that say what counts as red: gates, slices, allowances, acceptance, the baseline's age."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from kbgate.tasks.settings.sections import Count, Section, Share

GateLevel = Literal["critical", "supporting", "advisory"]
"""How grave it is to break a limit; `verdicts.Level` has two more, which nobody may write."""


class Gate(Section):
    """One line of [gates]: what a figure may do before it speaks against the index."""

    tolerance: Annotated[float, Field(ge=0)] | None = None
    """How much worse than the baseline it may be."""
    floor: float | None = None
    """The least it may be, whatever the baseline."""
    ceiling: float | None = None
    """The most it may be; for counts of cases, a share of those with gold."""
    rule: Literal["point", "significant", "noninferior"] = "point"
    """point: beyond the tolerance blocks; significant: must be significant too; noninferior: its interval must exclude it."""
    level: GateLevel = "critical"
    """critical blocks, supporting warns, advisory is only told."""
    min_n: Count = 1
    """Cases it must be measured on."""
    slack: Annotated[int, Field(ge=0)] | None = None
    """newly_failing only: ranks below k within which a drop only slips; 1 if left out."""
    slips: Annotated[int, Field(ge=0)] | None = None
    """newly_failing only: cases that may slip so; half of what contract may lose by its tolerance, at least 1, if left out."""

    @model_validator(mode="after")
    def _has_a_limit(self) -> Gate:
        if self.tolerance is None and self.floor is None and self.ceiling is None:
            raise ValueError("needs a tolerance, a floor or a ceiling")
        return self


class Slice(Section):
    """One [[slice]]: a limit on a part of the cases."""

    by: Literal["language", "kind", "domain", "tier", "topic", "filtered", "attack", "intent"]
    """What the cases are cut by: each value that stands there is a part of its own."""
    metric: str
    """METRIC or METRIC@k."""
    tolerance: Annotated[float, Field(ge=0)]
    """How much worse than the baseline a part may be."""
    level: GateLevel = "supporting"
    """critical blocks, supporting warns, advisory is only told."""
    min_n: Count = 30
    """A part of fewer cases informs and cannot block."""


class Allow(Section):
    """One [[allow]]: a dated exception, all four keys required."""

    case: str
    """The case that is excused."""
    check: str
    """From which check; one that says of itself that it may be excused (kbgate checks)."""
    reason: Annotated[str, Field(min_length=1)]
    """Why, for whoever reads the report."""
    until: dt.date
    """The last day it holds."""


class Calibrated(Section):
    """The calibration that says how much noise a healthy case has."""

    run: str
    """The run it is of."""
    date: dt.date
    """Its day."""
    noise: Mapping[Annotated[int, Field(ge=1, strict=False)], Share] = {}
    """By how many cards an answer needs: the most noise of a healthy question; `noise` holds for every other number."""


class Acceptance(Section):
    """[acceptance]: what the knowledge base must supply whatever the baseline did. Shares of the cases with gold."""

    quality: Share = 0.95
    """The least mean quality."""
    failing_share: Share = 0.05
    """The most cases that may fail, each with a proven cause or an allowance, none with a tier-gold answer."""
    noise: Share = 0.30
    """The most noise of one question, where `calibrated` says nothing else."""
    noisy_share: Share = 0.05
    """The most questions whose noise may be above their ceiling."""
    calibrated: Calibrated | None = None
    """Without it noise is advice: a single gold at rank 1 of 10 has a noise of 0.9."""
    level: GateLevel = "critical"
    """critical blocks, supporting warns, advisory is only told."""

    def noise_ceiling(self, needed: int) -> float:
        """The most noise of a question whose answer needs so many cards."""
        return self.calibrated.noise.get(needed, self.noise) if self.calibrated else self.noise


class BaselineSettings(Section):
    """[baseline]."""

    max_age_days: Count = 90
    """Days after which a baseline warns."""


GATED_COUNTS = ("newly_failing", "unbaselined_failing")
"""Lines of [gates] that limit a count of cases, as a share of the asked ones that have gold, rather than a metric."""

DEFAULT_GATES = {
    "contract": Gate(tolerance=0.02),
    "ndcg": Gate(tolerance=0.02, level="supporting"),
    "recall": Gate(tolerance=0.02, level="supporting"),
    "newly_failing": Gate(ceiling=0, slack=1),
    "unbaselined_failing": Gate(ceiling=0, level="supporting"),
    "fidelity": Gate(floor=0.95),
    "false_exclusion": Gate(ceiling=0.02),
}
"""What holds where suite.toml has no [gates] at all."""
ALWAYS = ("newly_failing", "unbaselined_failing", "fidelity")
"""Lines that hold beside any [gates], unless it has its own: a golden case is a test, and an index must find what is there."""
