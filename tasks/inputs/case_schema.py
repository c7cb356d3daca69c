"""One case as it may stand in a file: its keys, the forms of its gold, and what contradicts itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from kbgate.tasks.characters import is_blank
from kbgate.tasks.records import nfc, one_line

_FORMS = ("must_cite_one_of", "expected", "groups", "evidence")

Written = dict[str, Any]
"""A predicate as it may stand in a file: `checks` says what is wrong with it."""


class EvidenceRow(BaseModel):
    """Gold as a span of a card's text: verbatim, or by character offsets (end exclusive)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    card: str
    text: Annotated[str, Field(min_length=1)] | None = None
    start: int | None = None
    end: int | None = None

    @model_validator(mode="after")
    def _one_form(self) -> EvidenceRow:
        if [self.text is not None, self.start is not None, self.end is not None] not in (
            [True, False, False],
            [False, True, True],
        ):
            raise ValueError("give either text, or start and end")
        return self


class CaseRow(BaseModel):
    """One case as it may stand in a file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = Field(min_length=1, max_length=400)
    query: str
    kind: Literal["golden", "adversarial", "no_match"] = "golden"
    language: str = ""
    must_cite_one_of: list[str] = []
    expected: list[str] = []
    groups: list[list[str]] = []
    evidence: list[EvidenceRow] = []
    grades: dict[str, Annotated[int, Field(ge=1, le=1000)]] = {}
    filter: Written | None = None
    entitled: Written | None = None
    canary: bool = False
    cluster: str = ""
    split: Literal["dev", "release", ""] = ""
    numeric: bool = False
    attack: Literal["counterfactual", "distractor", "negation", "out_of_scope", ""] = ""
    topic: str = ""
    intent: str = ""
    notes: str = ""
    right_filter: Written | None = None

    @field_validator("id")
    @classmethod
    def _id_is_one_line(cls, value: str) -> str:
        return one_line(value)

    @field_validator("split")
    @classmethod
    def _nothing_reads_a_split_yet(cls, value: str) -> str:
        if value:
            raise ValueError("not available yet: every case is asked; remove it")
        return value

    @field_validator("query")
    @classmethod
    def _query_says_something(cls, value: str) -> str:
        if is_blank(value):
            raise ValueError("is empty")
        return value

    @model_validator(mode="after")
    def _gold_has_one_form(self) -> CaseRow:
        forms = [name for name in _FORMS if getattr(self, name)]
        if len(forms) > 1:
            raise ValueError(f"the gold stands in {len(forms)} forms ({', '.join(forms)}); keep one")
        if any(not group for group in self.groups):
            raise ValueError("an empty group can never be satisfied")
        has_gold = bool(forms or self.grades)
        if self.kind == "no_match" and has_gold:
            raise ValueError("a no_match case has no gold")
        if self.canary and not has_gold:
            raise ValueError("a canary without gold could never fail: it watches nothing")
        if self.kind == "golden" and not has_gold:
            raise ValueError("no gold; give must_cite_one_of, expected, groups or evidence, or say kind = no_match")
        ungraded = sorted({card for group in self.gold_groups() for card in group} - self.grades.keys())
        if self.grades and ungraded:
            raise ValueError(f"grades are given, but none for gold '{ungraded[0]}'")
        return self

    def gold_groups(self) -> tuple[tuple[str, ...], ...]:
        """The gold in its general form: AND between groups, OR inside one."""
        if self.must_cite_one_of:
            groups = [self.must_cite_one_of]
        elif self.expected:
            groups = [[card] for card in self.expected]
        elif self.evidence:
            groups = [[span.card] for span in self.evidence]
        else:
            groups = self.groups or ([list(self.grades)] if self.grades else [])
        unique = {tuple(sorted({nfc(card) for card in group})) for group in groups}
        return tuple(sorted(unique))
