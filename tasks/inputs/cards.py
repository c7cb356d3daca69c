"""The knowledge base, read from JSONL, CSV, Parquet, a BEIR folder or a folder of Markdown files into one table of cards."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from kbgate.tasks.domain import KnowledgeBase
from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.predicates import BUILT_IN_FIELDS, LARGEST
from kbgate.tasks.records import Record, clean, digest, nfc, one_line, problems_of, read_jsonl, read_table, read_text
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import CARD_COLUMNS

_FRONT_MATTER = re.compile(r"---[ \t]*\n(?P<head>.*?)^---[ \t]*(\n|\Z)", re.DOTALL | re.MULTILINE)


class CardRow(BaseModel):
    """One card as it may stand in a file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = Field(min_length=1, max_length=400)
    title: str = ""
    text: str
    language: str = ""
    concept: str = ""
    description: str = ""
    tier: Literal["gold", "silver", ""] = ""
    domain: str = ""
    topics: list[str] = []
    valid_from: str = ""
    valid_until: str = ""
    updated_at: str = ""
    source_url: str = ""
    metadata: dict[str, Any] = {}

    @field_validator("id")
    @classmethod
    def _id_is_one_line(cls, value: str) -> str:
        return nfc(one_line(value))

    @field_validator("valid_from", "valid_until", "updated_at")
    @classmethod
    def _date_is_iso(cls, value: str) -> str:
        if value:
            dt.datetime.fromisoformat(value)
        return value

    @field_validator("metadata")
    @classmethod
    def _metadata_is_flat(cls, value: dict[str, Any]) -> dict[str, Any]:
        for key, item in value.items():
            if key in BUILT_IN_FIELDS or key.startswith(("_", "chroma:")):
                raise ValueError(f"'{key}' is the name of a card's own field or the store's; rename the metadata key")
            items = item if isinstance(item, list) else [item]
            if any(isinstance(i, int | float) and not abs(i) <= LARGEST for i in items):
                raise ValueError(f"'{key}' is not finite, or too large to be compared exactly")
            if len({type(i) for i in items}) > 1 or not all(isinstance(i, str | int | float | bool) for i in items):
                raise ValueError(f"'{key}' is neither text, number, yes/no nor a list of one of these")
        return {key: item for key, item in value.items() if item != []}


def load_cards(suite: Suite) -> KnowledgeBase:
    """Read every card; what is wrong stands in `problems`, one sentence each."""
    path = (suite.folder / suite.kb.path).resolve()
    try:
        records, problems = _read(path)
    except InputError as error:
        return KnowledgeBase(pd.DataFrame(columns=list(CARD_COLUMNS)), tuple(error.problems))
    rows: list[dict[str, Any]] = []
    rejected: dict[str, Problem] = {}
    first: dict[str, Record] = {}
    for record in records:
        mistakes = []
        try:
            row = CardRow.model_validate(record.content)
        except ValidationError as error:
            mistakes = list(problems_of(error, record.file, record.line, CardRow))
        else:
            mistakes = [Problem(record.file, record.line, sentence) for sentence in _contradictions(row)]
            if row.id in first:
                there = first[row.id]
                sentence = f"id '{row.id}' is taken by {there.file}:{there.line}"
                mistakes.append(Problem(record.file, record.line, sentence))
        if mistakes:
            problems += mistakes
            rejected.setdefault(nfc(str(record.content.get("id", ""))), mistakes[0])
            continue
        first[row.id] = record
        rows.append(_card(row, record))
    if not rows and not problems:
        problems.append(Problem(path.name, 0, "holds no card"))
    cards = pd.DataFrame(rows, columns=list(CARD_COLUMNS), dtype=object)
    lost = {name: problem for name, problem in rejected.items() if name not in first}
    return KnowledgeBase(cards.sort_values("id", ignore_index=True), tuple(problems), lost)


def _contradictions(row: CardRow) -> Iterator[str]:
    if not row.text.strip() and not row.title.strip():
        yield f"card '{row.id}' has neither title nor text"
    start, end = _day(row.valid_from), _day(row.valid_until)
    if start and end and start > end:
        yield f"card '{row.id}' is valid from {start} until {end}: never"


def _day(text: str) -> dt.date | None:
    return dt.datetime.fromisoformat(text).date() if text else None


def _card(row: CardRow, record: Record) -> dict[str, Any]:
    content = row.model_dump()
    return {
        **content,
        "valid_from": _day(row.valid_from),
        "valid_until": _day(row.valid_until),
        "hash": digest({k: v for k, v in content.items() if k not in ("id", "updated_at")}, 16),
        "file": record.file,
        "line": record.line,
    }


def _read(path: Path) -> tuple[list[Record], list[Problem]]:
    """The raw records of whatever stands at a path."""
    if path.is_dir():
        if (path / "corpus.jsonl").is_file():
            return _read_beir(path / "corpus.jsonl")
        files = sorted(p for p in path.rglob("*") if p.suffix.lower() in (".md", ".txt") and p.is_file())
        if not files:
            raise InputError([Problem(path.name, 0, "holds neither corpus.jsonl nor any .md or .txt file")])
        return [_read_document(file, path) for file in files], []
    match path.suffix.lower():
        case ".jsonl":
            return _read_beir(path) if path.name == "corpus.jsonl" else read_jsonl(path)
        case ".csv":
            records, problems = read_table(path)
            return [_unfold(record) for record in records], problems
        case ".parquet":
            return list(_read_parquet(path)), []
    raise InputError([Problem(path.name, 0, "is none of .jsonl, .csv, .parquet, a BEIR folder or a folder of .md / .txt")])


def _read_beir(path: Path) -> tuple[list[Record], list[Problem]]:
    records, problems = read_jsonl(path)
    return [Record(r.file, r.line, {("id" if k == "_id" else k): v for k, v in r.content.items()}) for r in records], problems


def _unfold(record: Record) -> Record:
    """A flat row as a card: `topics` split at semicolons, `metadata.x` columns gathered."""
    content: dict[str, Any] = {"text": ""}
    metadata: dict[str, Any] = {}
    for key, value in record.content.items():
        if key.startswith("metadata."):
            metadata[key.removeprefix("metadata.")] = value
        elif key == "topics" and isinstance(value, str):
            content[key] = [topic.strip() for topic in value.split(";") if topic.strip()]
        else:
            content[key] = value
    return Record(record.file, record.line, {**content, **({"metadata": metadata} if metadata else {})})


def _read_parquet(path: Path) -> Iterator[Record]:
    import pyarrow.parquet as pq

    try:
        rows: Iterable[dict[str, Any]] = pq.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise InputError([Problem(path.name, 0, f"is not a readable Parquet file ({error})")]) from None
    for number, row in enumerate(rows, start=1):
        row = {k: v for k, v in row.items() if v is not None and not k.startswith("__index_level_")}
        content = {k: v.isoformat() if isinstance(v, dt.date) else v for k, v in row.items()}
        metadata = content.get("metadata")
        if isinstance(metadata, dict):
            # A Parquet struct gives every row every key; what is null in this row was never there.
            content["metadata"] = {k: v for k, v in metadata.items() if v is not None}
        yield _unfold(Record(path.name, number, clean(content)))


def _read_document(file: Path, root: Path) -> Record:
    """A Markdown or text file as a card: front matter gives fields, the path gives the id, the first heading the title."""
    name = file.relative_to(root).as_posix()
    text = read_text(file)
    content: dict[str, Any] = {}
    front = _FRONT_MATTER.match(text)
    if front:
        import yaml

        try:
            # The base loader reads every scalar as the text it is: 00123, NA and 1e5 stay what they are.
            found = yaml.load(front["head"], Loader=yaml.BaseLoader) or {}
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            sentence = f"has front matter that is not valid YAML ({getattr(error, 'problem', None) or 'unreadable'})"
            raise InputError([Problem(name, mark.line + 2 if mark else 1, sentence)]) from None
        if isinstance(found, dict):
            # Anything else between two rules is text that begins with a thematic break.
            content, text = found, text[front.end() :]
    heading = next((line.lstrip("#").strip() for line in text.split("\n") if line.startswith("#")), "")
    defaults = {"id": name.rsplit(".", 1)[0], "title": heading}
    return Record(name, 1, clean({**defaults, **content, "text": text.strip()}))
