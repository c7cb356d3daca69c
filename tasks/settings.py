"""The schema of suite.toml: every key, its default, what is allowed. `suite.py` reads a file into it.

Keys that the schema knows and this version cannot honour yet are refused by `suite.py`, never ignored: a setting that does
nothing would be a promise.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from string import Formatter
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

Level = Literal["critical", "supporting", "advisory"]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]

FILE = "suite.toml"
DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


class Section(BaseModel):
    """A table of suite.toml: no unknown keys, no type guessing, never changed after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Kb(Section):
    """[kb]: where the cards are."""

    path: str = "cards.jsonl"
    on_bad_card: Literal["refuse", "reject"] = "refuse"
    filterable: Annotated[tuple[str, ...], Field(strict=False)] = ()


class Chunking(Section):
    """[chunking]: sizes in characters."""

    method: str = "recursive"
    size: Annotated[int, Field(ge=16)] = 384
    overlap: Annotated[int, Field(ge=0)] = 64

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> Chunking:
        if self.overlap * 2 > self.size:
            raise ValueError(f"overlap = {self.overlap} is more than half of size = {self.size}")
        return self


class Embedding(Section):
    """[embedding]: the model and the text it reads."""

    model: str = DEFAULT_MODEL
    endpoint: str = ""
    text: str = "{title}\n{description}\n{chunk}"
    query_prefix: str = ""
    passage_prefix: str = ""
    batch: Count = 32

    @field_validator("text")
    @classmethod
    def _names_are_known(cls, text: str) -> str:
        parts = list(Formatter().parse(text))
        if any(spec or conversion for _, _, spec, conversion in parts) or not {
            name for _, name, _, _ in parts if name is not None
        } <= {"title", "description", "chunk"}:
            raise ValueError("only {title}, {description} and {chunk} may stand in braces")
        if "{chunk}" not in text:
            raise ValueError("{chunk} is missing: nothing of the card would be embedded")
        return text


class IndexSettings(Section):
    """[index]: Chroma's HNSW parameters."""

    space: Literal["cosine"] = "cosine"
    max_neighbors: Count = 48
    ef_construction: Count = 400
    ef_search: Count | Literal["auto"] = "auto"


class Retrieval(Section):
    """[retrieval]: the method under examination."""

    method: str = "hybrid"
    candidates: Count = 100
    rrf_k: Count = 60
    timeout_s: Annotated[float, Field(gt=0)] = 10
    concurrency: Count = 4
    min_similarity: float | None = None
    rerank: dict[str, JsonValue] | None = None
    python: str | None = None
    http: str | None = None
    chroma: str | None = None
    collection: str | None = None
    run_file: str | None = None


class Production(Section):
    """[production]: the Chroma that serves, and how long a verdict may open its door."""

    path: str = ""
    """A folder, relative to the suite; empty: production/<suite> in kbgate's home."""
    url: str = ""
    """A Chroma server instead of a folder."""
    collection: str = ""
    """The name readers resolve on a server; empty: the suite's name."""
    method: str = ""
    """What production ranks with; empty, or the same as [retrieval] method."""
    keep: Count = 3
    max_age: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3}[mhd]$")] = "24h"

    @model_validator(mode="after")
    def _one_place(self) -> Production:
        if self.path and self.url:
            raise ValueError("path and url are two places; give one")
        return self

    @property
    def max_age_delta(self) -> dt.timedelta:
        """`max_age` as a length of time."""
        unit = {"m": "minutes", "h": "hours", "d": "days"}[self.max_age[-1]]
        return dt.timedelta(**{unit: int(self.max_age[:-1])})


class Gate(Section):
    """One line of [gates]: what a figure may do before it speaks against the index."""

    tolerance: Annotated[float, Field(ge=0)] | None = None
    floor: float | None = None
    ceiling: float | None = None
    rule: Literal["point", "significant", "noninferior"] = "point"
    level: Level = "critical"
    min_n: Count = 1
    slack: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _has_a_limit(self) -> Gate:
        if self.tolerance is None and self.floor is None and self.ceiling is None:
            raise ValueError("needs a tolerance, a floor or a ceiling")
        return self


class Slice(Section):
    """One [[slice]]: a limit on a part of the cases."""

    by: Literal["language", "kind", "domain", "tier", "topic", "filtered", "attack", "intent"]
    metric: str
    tolerance: Annotated[float, Field(ge=0)]
    level: Level = "supporting"
    min_n: Count = 30


class Allow(Section):
    """One [[allow]]: a dated exception, all four keys required."""

    case: str
    check: str
    """One that says of itself that it may be excused."""
    reason: Annotated[str, Field(min_length=1)]
    until: dt.date


class Calibrated(Section):
    """The calibration that says how much noise a healthy case has."""

    run: str
    date: dt.date


class Acceptance(Section):
    """[acceptance]: what the knowledge base must supply whatever the baseline did. Shares of the cases with gold."""

    quality: Share = 0.95
    failing_share: Share = 0.05
    noise: Share = 0.30
    calibrated: Calibrated | None = None
    """Without it noise is advice: a single gold at rank 1 of 10 has a noise of 0.9."""
    level: Level = "critical"


class BaselineSettings(Section):
    """[baseline]."""

    max_age_days: Count = 90


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


class Suite(Section):
    """A suite: what is measured, on what, and what counts as red."""

    folder: Path
    given: str = ""
    """The folder as it was typed, for commands to type next."""
    floors: dict[str, float] = {}
    """Critical floors of the command line, beside [gates]."""
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
    top_k: Count = 10
    k_values: Annotated[tuple[Count, ...], Field(strict=False, min_length=1)] = (1, 3, 5, 10)
    unit: Literal["card", "chunk", "span"] = "card"
    fast: Count = 50
    pass_mark: Annotated[float, Field(gt=0, le=1)] = 0.9
    as_of: dt.date | Literal["today"] = "today"
    kb: Kb = Kb()
    chunking: Chunking = Chunking()
    embedding: Embedding = Embedding()
    index: IndexSettings = IndexSettings()
    retrieval: Retrieval = Retrieval()
    production: Production = Production()
    engine: dict[str, JsonValue] | None = None
    acceptance: Acceptance | None = None
    gates: dict[str, Gate] = Field(default_factory=lambda: dict(DEFAULT_GATES))
    """The lines of [gates]; `ALWAYS` among them unless it has lines of its own for these."""
    slices: Annotated[tuple[Slice, ...], Field(alias="slice", strict=False)] = ()
    allowances: Annotated[tuple[Allow, ...], Field(alias="allow", strict=False)] = ()
    baseline: BaselineSettings = BaselineSettings()

    @property
    def day(self) -> dt.date:
        """The day on which validity is judged."""
        return dt.datetime.now(dt.UTC).date() if self.as_of == "today" else self.as_of

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
        odd = [name for name in kb.filterable if name.startswith(("_", "chroma:"))]
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
