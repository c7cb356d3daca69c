"""What is written down and read again, as models: what the files of a baseline say, and what every document has in common.

Models of the other documents stand with their files (`runs.document`, `runs.history`, `production.pointer`). A document
holds no unknown key, no missing one and no NaN; its JSON schema is made from its model.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class Document(BaseModel):
    """A part of a written file: no unknown keys, no type guessing, never changed after reading."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        defer_build=True,
        json_schema_serialization_defaults_required=True,
    )

    @classmethod
    def of(cls, content: JsonValue) -> Self:
        """What JSON content says, as `records.parse_json` gives it; raises ValueError, a `ValidationError` with the places."""
        # As JSON: a day and a known word are text there, and nothing else is guessed.
        return cls.model_validate_json(json.dumps(content, allow_nan=False))

    def plain(self) -> dict[str, JsonValue]:
        """As JSON content: what is written, digested and compared."""
        content: dict[str, JsonValue] = self.model_dump(mode="json", by_alias=True)
        return content


class Compact(Document):
    """A document that leaves out what is as it is by default: a line of many stays short, and a new key changes no digest."""

    def plain(self) -> dict[str, JsonValue]:
        """As JSON content, without what has its default."""
        content: dict[str, JsonValue] = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return content


Day = Annotated[dt.date, Field(strict=False)]
"""A day, written in ISO form."""


class Mean(Document):
    """A figure over the cases that have it."""

    mean: float
    n: int


Means = dict[str, Mean]
"""By figure, such as `ndcg@10`."""


class Counts(Document):
    """How much there was."""

    cards: int
    chunks: int
    rows: int
    """Rows of the index: distinct texts."""
    cases: int


class AcceptedFingerprints(Document):
    """The content hashes a baseline is bound to."""

    index: str
    golden: str
    policy: str


class Fingerprints(AcceptedFingerprints):
    """The content hashes a verdict is bound to."""

    baseline: str = ""
    """Of the baseline it was compared with; empty where there was none."""


class ModelIdentity(Document):
    """An embedding model."""

    name: str
    weights: str
    """sha256 over every file that shapes a vector; empty where nothing was embedded."""


class Commit(Document):
    """Where the suite's repository stood."""

    hash: str
    dirty: bool


class Merged(Document):
    """A tree that nobody has checked out: what git makes of two commits."""

    target: str
    """The commit of the target branch."""
    change: str
    """The commit that was checked out."""
    tree: str
    """What `git merge-tree --write-tree` makes of them."""


class Provenance(Document):
    """Where figures come from."""

    model: ModelIdentity
    versions: dict[str, str]
    """Of the libraries that shape figures."""
    commit: Commit | None
    merged: Merged | None = Field(default=None, exclude_if=lambda value: value is None)
    """What was examined where it was not the checkout."""
    settings: str = ""
    """Digest of how cards become rankings, whatever the cards."""
    pipeline: dict[str, dict[str, JsonValue]] = {}
    """The settings that make rankings of cards, by section of suite.toml."""


class Acceptance(Document):
    """Who accepted a baseline's scores, and in spite of what."""

    on: Day
    reason: str
    verdict: str
    accepted_regression: list[str]
    """Cases that were knowingly accepted as failing."""
    in_spite_of: list[str]
    """The sentences the gate said."""


class Span(Document):
    """Gold as a span of a card's text: verbatim, or by character offsets (end exclusive)."""

    card: str
    text: str | None = None
    start: int | None = None
    end: int | None = None


Written = dict[str, JsonValue]
"""A predicate as it stands in a file."""


class Asked(Compact):
    """What was asked of a case and what had to be found, so that it can be asked again when its file says something else."""

    query: str
    kind: str
    language: str = ""
    groups: list[list[str]]
    grades: dict[str, int]
    filter: Written | None = None
    entitled: Written | None = None
    right_filter: Written | None = None
    evidence: list[Span] = []


class AnchoredCase(Compact):
    """A case as it stood at the anchor."""

    hash: str
    scores: dict[str, float]
    """In the figures that have a tolerance."""
    asked: Asked | None = None
    """None where it is asked as its row says."""


class Anchor(Compact):
    """The baseline that later ones are held against together."""

    on: Day
    reason: str
    index: str
    """Fingerprint of its index."""
    aggregates: Means = {}
    """Its figures of the whole run."""
    removed: dict[str, AnchoredCase] = {}
    """Its cases that are asked no more, by id."""


class Digests(Document):
    """What the three files of a baseline hold, so that one changed by hand is found."""

    summary: str = ""
    cases: str
    cards: str


class BaselineSummary(Document):
    """baseline.json."""

    schema_: int = Field(alias="schema")
    suite: str
    lineage: str
    """Made when the suite's first scores were accepted, and kept: two suites of one name are told apart by it."""
    folder: str
    """The suite's, from the root of its repository; outside of one, where it really is."""
    accepted: Acceptance
    top_k: int
    unit: str
    method: str
    metric_versions: dict[str, int]
    means: Means
    aggregates: Means
    """Figures of the whole run, such as `auroc`, with the cases they are made from."""
    lanes: dict[str, Means]
    counts: Counts
    fingerprints: AcceptedFingerprints
    provenance: Provenance
    digests: Digests
    anchor: Anchor

    def plain(self) -> dict[str, JsonValue]:
        """As JSON content, the provenance without what was neither read nor given."""
        content: dict[str, JsonValue] = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return {**content, "anchor": self.anchor.plain()}


class RowAcceptance(Document):
    """Who accepted one case's row by itself, and from which run: the rest of the baseline is older."""

    run: str
    index: str
    """Fingerprint of the index that was examined."""
    on: Day
    by: str
    reason: str


class BaselineCase(Compact):
    """A line of baseline.cases.jsonl."""

    id: str
    hash: str
    cluster: str
    canary: bool
    tier_gold: bool
    outcome: str
    scores: dict[str, float]
    """By figure; a figure that was not defined is absent."""
    gold_ranks: dict[str, int | None]
    """To depth `candidates`; None: not within."""
    top: list[str]
    """The first top_k cards."""
    kth: dict[str, float]
    """By lane: the score at top_k, or at the ranking's end."""
    asked: Asked
    cosine: float | None = None
    """The best cosine of question and card; None where no lane gives any."""
    topic: str = ""
    attack: str = ""
    intent: str = ""
    numeric: bool = False
    domains: list[str] = []
    tiers: list[str] = []
    """Of its gold cards."""
    anchor: AnchoredCase | None = None
    """What it was at the anchor; None where it was not there."""
    accepted: RowAcceptance | None = None
    """None where it came with all the others."""
    slipped: bool = False
    """Whether it fails because a slip was accepted: it passed once, and counts as slipped until it passes again."""


class BaselineCard(Compact):
    """A line of baseline.cards.jsonl."""

    id: str
    hash: str
    """Of all that a reader of the card could see."""
    text: str
    """Hash of the text alone."""
    length: int
    """Characters of the text."""
    language: str = ""
    tier: str = ""
    domain: str = ""
    fields: dict[str, JsonValue] = {}
    """By filterable field beside these: its value, or `sha256:` and a hash of a long one."""
