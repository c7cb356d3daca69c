"""verdict.json: what a run came to, as one model. Its JSON schema is made from it; whoever reads a verdict reads it by this.

Every part says what it rests on, so that a new one is recomputed by `kbgate verify` or is known not to be.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field, JsonValue, PlainSerializer, ValidationError, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from kbgate.tasks.conclusions import Code, Evaluation, Exam, VerdictName
from kbgate.tasks.domain import Mode, Outcome
from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.index.fingerprint import kb_fingerprint
from kbgate.tasks.records import parse_json, problems_of, read_text
from kbgate.tasks.results import ChangeKind
from kbgate.tasks.runs.parts import (
    ArrivalsPart,
    CasesPart,
    Count,
    DiagnosisPart,
    FigurePart,
    Ids,
    InputsPart,
    Part,
    ReasonPart,
    arrivals_part,
    diagnosis_part,
    figure_part,
    previous_part,
)
from kbgate.tasks.schema import Counts, Day, Fingerprints, Provenance

FILE = "verdict.json"
SCHEMA: Final = 1


class Basis(Enum):
    """What a part of a verdict rests on."""

    RANKINGS = "the rankings, the golden set and the baseline: it is recomputed"
    SEAL = "the run itself: nothing but the seal says that it is as written"


_RANKINGS, _SEAL = Basis.RANKINGS, Basis.SEAL

SuiteName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
RunId = Annotated[str, Field(pattern=r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}$")]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Moment = Annotated[
    AwareDatetime,
    PlainSerializer(lambda moment: moment.isoformat(timespec="seconds"), return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]


class Based(Part):
    """A document every part of which says what it rests on."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        silent = [name for name, field in cls.model_fields.items() if not any(isinstance(m, Basis) for m in field.metadata)]
        if silent:
            raise TypeError(f"{cls.__name__}.{silent[0]} does not say what it rests on")


class VerdictDocument(Based):
    """kbgate verdict, version 1."""

    schema_: Annotated[Literal[1], _SEAL] = Field(alias="schema")
    suite: Annotated[SuiteName, _RANKINGS]
    run: Annotated[RunId, _SEAL]
    build: Annotated[str, _SEAL]
    """The store that was examined; promotion accepts only its own."""
    time: Annotated[Moment, _SEAL]
    as_of: Annotated[Day, _SEAL]
    """The day on which validity was judged."""
    valid_at: Annotated[Moment | None, _SEAL] = Field(default=None, exclude_if=lambda value: value is None)
    """The instant at which validity was judged; absent in verdicts of an older kbgate."""
    mode: Annotated[Mode, _SEAL]
    method: Annotated[str, _SEAL]
    top_k: Annotated[int, Field(ge=1), _RANKINGS]
    verdict: Annotated[VerdictName, _RANKINGS]
    exit_code: Annotated[int, Field(ge=0, le=4), _RANKINGS]
    code: Annotated[Code, _RANKINGS]
    provisional: Annotated[bool, _RANKINGS]
    """A red fast run: the full set decides."""
    reasons: Annotated[list[ReasonPart], _RANKINGS]
    """Gravest first; the first one is the headline."""
    fingerprints: Annotated[Fingerprints, _SEAL]
    kb: Annotated[Hash, _SEAL]
    """Fingerprint of the cards."""
    newly_failing: Annotated[Ids, _RANKINGS]
    newly_passing: Annotated[Ids, _RANKINGS]
    slipped: Annotated[Ids, _RANKINGS]
    unbaselined_failing: Annotated[Ids, _RANKINGS]
    access_widened: Annotated[Ids, _RANKINGS]
    """Gold hidden from its asker in the baseline, visible now."""
    cases: Annotated[CasesPart, _RANKINGS]
    arrivals: Annotated[ArrivalsPart | None, _SEAL]
    diagnosis: Annotated[DiagnosisPart, _SEAL]
    outcomes: Annotated[dict[Outcome, Annotated[int, Field(ge=1)]], _RANKINGS]
    extended: Annotated[Count, _RANKINGS]
    """Questions for which a lane was asked for more than `candidates` rows."""
    figures: Annotated[list[FigurePart], _RANKINGS]
    inputs: Annotated[InputsPart, _SEAL]
    counts: Annotated[Counts, _SEAL]
    provenance: Annotated[Provenance, _SEAL]
    files: Annotated[dict[str, Sha256], _SEAL] = Field(default_factory=dict)
    """sha256 of every other file of the run; empty until they are written."""
    seal: Annotated[Sha256 | Literal[""], _SEAL] = ""
    """sha256 of all the rest but `hmac`; empty until it is written. It shows damage: whoever edits can seal again."""
    hmac: Annotated[Sha256 | Literal[""], _SEAL] = Field(default="", exclude_if=lambda value: not value)
    """HMAC-SHA256 of all the rest, by KBGATE_KEY; absent where there was no key."""


def parts_of(basis: Basis) -> tuple[str, ...]:
    """The parts of a verdict that rest on this, in the order they are written in."""
    return tuple(field.alias or name for name, field in VerdictDocument.model_fields.items() if basis in field.metadata)


class _JsonSchema(GenerateJsonSchema):
    """Without titles: they only repeat the names."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def verdict_schema() -> dict[str, JsonValue]:
    """The JSON schema of verdict.json: what reports/schemas holds for readers that are not Python."""
    schema: dict[str, JsonValue] = VerdictDocument.model_json_schema(mode="serialization", schema_generator=_JsonSchema)
    head: dict[str, JsonValue] = {"$schema": GenerateJsonSchema.schema_dialect, "$id": f"kbgate/verdict.v{SCHEMA}"}
    return {**head, **schema, "title": f"kbgate verdict, version {SCHEMA}"}


def read_document(path: Path) -> VerdictDocument:
    """A verdict.json; raises `InputError`, one sentence, for everything else."""
    next_step = "name the verdict.json of a run"
    try:
        content = parse_json(read_text(path))
        schema = content.get("schema") if isinstance(content, dict) else None
        if isinstance(schema, int) and schema > SCHEMA:
            next_step = "upgrade kbgate"
        if schema != SCHEMA:
            raise ValueError(f"its schema is {schema!r}, this kbgate reads {SCHEMA}")
        return VerdictDocument.of(content)
    except ValidationError as error:
        first, *others = problems_of(error, str(path), 0, VerdictDocument)
        wrong = first.sentence + (f", and {len(others)} more" if others else "")
    except ValueError as error:
        wrong = str(error)
    raise InputError([Problem(str(path), 0, f"is no verdict kbgate wrote ({wrong}); {next_step}")])


def verdict_document(evaluation: Evaluation) -> VerdictDocument:
    """What an evaluation came to, as it is written; its files and its seal come when it is."""
    exam, verdict = evaluation.exam, evaluation.verdict
    return VerdictDocument(
        schema=SCHEMA,
        suite=exam.suite.name,
        run=evaluation.run_id,
        build=evaluation.build,
        time=evaluation.started.replace(microsecond=0),
        as_of=evaluation.as_of.date(),
        valid_at=evaluation.as_of,
        mode=exam.run.mode,
        method=exam.run.method,
        top_k=exam.suite.top_k,
        verdict=verdict.name,
        exit_code=verdict.exit_code,
        code=verdict.code,
        provisional=verdict.provisional,
        reasons=[
            ReasonPart(check=r.check, level=r.level, sentence=r.sentence, cases=list(r.cases), code=r.code)
            for r in verdict.reasons
        ],
        fingerprints=evaluation.fingerprints,
        kb=kb_fingerprint(exam.kb.cards),
        newly_failing=_changed(exam, ChangeKind.NEWLY_FAILING, ChangeKind.FAILING_AS_IT_WAS),
        newly_passing=_changed(exam, ChangeKind.NEWLY_PASSING),
        slipped=_changed(exam, ChangeKind.SLIPPED),
        unbaselined_failing=_changed(exam, ChangeKind.UNBASELINED_FAILING),
        access_widened=_changed(exam, ChangeKind.ACCESS_WIDENED),
        cases=_cases(exam),
        arrivals=arrivals_part(evaluation.arrivals),
        diagnosis=diagnosis_part(evaluation.diagnosis),
        outcomes=dict(sorted(Counter(answer.outcome for answer in exam.run.answers.values()).items())),
        extended=sum(answer.extended for answer in exam.run.answers.values()),
        figures=[figure_part(row) for row in exam.comparison.figures],
        inputs=_inputs(exam),
        counts=evaluation.counts,
        provenance=evaluation.provenance,
    )


def _changed(exam: Exam, *kinds: ChangeKind) -> Ids:
    return [change.case.id for change in exam.comparison.changed(*kinds)]


def _cases(exam: Exam) -> CasesPart:
    comparison = exam.comparison
    unseen = sum(not placement.ranks for placement in exam.scores.placements.values())
    return CasesPart(
        asked=len(exam.asked),
        compared=len(comparison.common) if exam.baseline else 0,
        permission_only=unseen - sum(not case.grades for case in exam.asked.values()),
        touched=list(exam.touched),
        new=list(comparison.new),
        removed=list(comparison.removed),
        edited=list(comparison.edited),
    )


def _inputs(exam: Exam) -> InputsPart:
    return InputsPart(
        suite=exam.suite.given,
        floors=dict(exam.suite.floors),
        asked=list(exam.asked),
        announced=list(exam.announced),
        explained=list(exam.causes.proven),
        previous=previous_part(exam.previous),
        judges_edits=exam.earlier is not None and exam.earlier.judged,
    )
