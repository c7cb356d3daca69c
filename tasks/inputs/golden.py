"""The golden set: every record of its file, or of BEIR judgments, held against what a case is."""

from __future__ import annotations

import dataclasses

from pydantic import ValidationError

from kbgate.tasks.characters import as_seen
from kbgate.tasks.domain import Case, Evidence, GoldenSet
from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.inputs.case_schema import CaseRow
from kbgate.tasks.inputs.declared import Types, rule_as_declared
from kbgate.tasks.inputs.judgments import read_judgments
from kbgate.tasks.records import Record, canonical, digest, nfc, problems_of, read_jsonl
from kbgate.tasks.settings import Suite

FILE = "golden.jsonl"
HASH_LENGTH = 16


def load_golden(suite: Suite) -> GoldenSet:
    """Read every case; what is wrong stands in `problems`, one sentence each."""
    try:
        records, problems, unjudged = _records(suite)
    except InputError as error:
        return GoldenSet({}, tuple(error.problems))
    cases: dict[str, Case] = {}
    looks: dict[str, Case] = {}
    for record in records:
        try:
            row = CaseRow.model_validate(record.content)
        except ValidationError as error:
            problems += problems_of(error, record.file, record.line, CaseRow)
            continue
        if first := looks.get(as_seen(row.id)):
            taken = "taken by" if first.id == row.id else f"to the eye the same as '{first.id}' of"
            problems.append(Problem(record.file, record.line, f"id '{row.id}' is {taken} {first.file}:{first.line}"))
            continue
        cases[row.id] = looks[as_seen(row.id)] = _case(row, record, suite.kb.types)
    if not cases and not problems:
        problems.append(Problem(FILE, 0, "holds no case: an empty exam passes nobody"))
    return GoldenSet({name: cases[name] for name in sorted(cases)}, tuple(problems), unjudged)


def _records(suite: Suite) -> tuple[list[Record], list[Problem], int]:
    kb = (suite.folder / suite.kb.path).resolve()
    beir = kb if kb.is_dir() else kb.parent
    if (suite.folder / FILE).exists() or not (beir / "queries.jsonl").is_file():
        return *read_jsonl(suite.folder / FILE), 0
    return read_judgments(beir)


def _case(row: CaseRow, record: Record, types: Types) -> Case:
    groups = row.gold_groups()
    grades = {nfc(card): grade for card, grade in row.grades.items()}
    grades = grades or {card: 1 for group in groups for card in group}
    case = Case(
        id=row.id,
        query=row.query,
        kind=row.kind,
        language=row.language,
        groups=groups,
        grades=grades,
        filter=rule_as_declared(row.filter, types),
        entitled=rule_as_declared(row.entitled, types),
        right_filter=rule_as_declared(row.right_filter, types),
        canary=row.canary,
        cluster=row.cluster or row.id,
        numeric=row.numeric,
        attack=row.attack,
        topic=row.topic,
        intent=row.intent,
        evidence=tuple(Evidence(span.card, span.text, span.start, span.end) for span in row.evidence),
        file=record.file,
        line=record.line,
    )
    return dataclasses.replace(case, hash=hash_of(case))


def hash_of(case: Case) -> str:
    """The content hash: all that decides whether a case is found; its labels (topic, cluster, attack and so on) do not."""
    content: dict[str, object] = {
        "query": case.query,
        "filter": case.filter,
        "entitled": case.entitled,
        "kind": case.kind,
        "language": case.language,
        "canary": case.canary,
        "groups": case.groups,
        "grades": case.grades,
    }
    # Absent where there is none: what a case does not use may come into the hash without making another case of it.
    if case.right_filter is not None:
        content["right_filter"] = case.right_filter
    if case.evidence:
        content["evidence"] = sorted(canonical(dataclasses.asdict(span)) for span in case.evidence)
    return digest(content, HASH_LENGTH)
