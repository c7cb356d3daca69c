"""The schema of suite.toml: every key, its default, what is allowed; `inputs.suite` reads a file into it.

Keys that the schema knows and this version cannot honour yet are refused there, never ignored: a setting that does nothing
would be a promise. `kbgate settings` prints the list, made from these models.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from kbgate.tasks.settings.policy import (
    ALWAYS,
    DEFAULT_GATES,
    GATED_COUNTS,
    Acceptance,
    Allow,
    BaselineSettings,
    Calibrated,
    Gate,
    GateLevel,
    Slice,
)
from kbgate.tasks.settings.sections import (
    DEFAULT_MODEL,
    Chunking,
    Count,
    Embedding,
    IndexSettings,
    Kb,
    Production,
    Retrieval,
    Section,
    is_storable,
)

__all__ = [
    "ALWAYS", "DEFAULT_GATES", "DEFAULT_MODEL", "FILE", "GATED_COUNTS", "Acceptance", "Allow", "BaselineSettings",
    "Calibrated", "Chunking", "Embedding", "Gate", "GateLevel", "IndexSettings", "Kb", "Production", "Retrieval", "Section",
    "Slice", "Suite", "is_storable",
]  # fmt: skip

FILE = "suite.toml"


class Suite(Section):
    """A suite: what is measured, on what, and what counts as red."""

    folder: Path
    given: str = ""
    """The folder as it was typed, for commands to type next."""
    floors: dict[str, float] = Field(default_factory=dict)
    """Critical floors of the command line, beside [gates]."""
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
    """The suite's name: lower-case letters, digits and hyphens."""
    top_k: Count = 10
    """The k of the verdict."""
    k_values: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] = (1, 3, 5, 10)
    """Cut-offs that are reported too."""
    unit: Literal["card", "chunk", "span"] = "card"
    """What is ranked; chunk and span are reserved."""
    fast: Count = 50
    """Cases of the pull-request subset."""
    pass_mark: Annotated[float, Field(gt=0, le=1)] = 0.9
    """The contract below which a case fails."""
    as_of: dt.date | Literal["today"] = "today"
    """The day at whose beginning validity is judged, for figures that come out again; promotion and after-ingest judge now."""
    kb: Kb = Kb()
    """Where the cards are."""
    chunking: Chunking = Chunking()
    """How cards are cut."""
    embedding: Embedding = Embedding()
    """The model and the text it reads."""
    index: IndexSettings = IndexSettings()
    """The approximate index."""
    retrieval: Retrieval = Retrieval()
    """The method under examination."""
    production: Production = Production()
    """What serves."""
    engine: dict[str, JsonValue] | None = None
    """Reserved: where the work is done."""
    acceptance: Acceptance | None = None
    """What must be supplied whatever the baseline did; absent: not judged."""
    gates: dict[str, Gate] = Field(default_factory=lambda: dict(DEFAULT_GATES))
    """The lines of [gates]; `ALWAYS` among them unless it has lines of its own for these."""
    slices: Annotated[tuple[Slice, ...], Field(alias="slice", strict=False)] = ()
    """Limits on parts of the cases."""
    allowances: Annotated[tuple[Allow, ...], Field(alias="allow", strict=False)] = ()
    """Dated exceptions."""
    baseline: BaselineSettings = BaselineSettings()
    """The accepted scores."""

    @property
    def cuts(self) -> tuple[int, ...]:
        """Every k that is reported, the verdict's among them, ascending."""
        return tuple(sorted({*self.k_values, self.top_k}))

    @field_validator("gates")
    @classmethod
    def _always_on(cls, gates: dict[str, Gate]) -> dict[str, Gate]:
        named = {name.partition("@")[0] for name in gates}
        return {**gates, **{name: DEFAULT_GATES[name] for name in ALWAYS if name not in named}}

    @field_validator("kb")
    @classmethod
    def _filterable_can_be_stored(cls, kb: Kb) -> Kb:
        odd = [name for name in kb.filterable if not is_storable(name)]
        if odd:
            raise ValueError(f"filterable: '{odd[0]}' is a name the store keeps for itself")
        return kb

    @model_validator(mode="after")
    def _production_ranks_alike(self) -> Suite:
        if self.production.method not in ("", self.retrieval.method):
            raise ValueError(
                f"production.method = '{self.production.method}' but retrieval.method = '{self.retrieval.method}': "
                "the exam must rank as production does"
            )
        return self

    @model_validator(mode="after")
    def _candidates_cover_every_cut(self) -> Suite:
        if self.retrieval.candidates < self.cuts[-1]:
            raise ValueError(f"retrieval.candidates = {self.retrieval.candidates} is below the largest k, {self.cuts[-1]}")
        return self
