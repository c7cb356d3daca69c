"""Files read as the raw records of cards, one function a kind of file: `@reader(".jsonl")` on `f(path, root)`.

A reader gives records as they stand in the file, with their places; what a card is, `cards` says. One that reads a whole
file as one card says so (`document=True`): files of its kind are also collected from folders.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.inputs.folder import LeftOut, list_folder, told
from kbgate.tasks.inputs.front_matter import read_front_matter
from kbgate.tasks.inputs.headings import first_heading
from kbgate.tasks.records import Record, clean, read_jsonl, read_table, read_text
from kbgate.tasks.registry import Registry, first_line
from kbgate.tasks.settings import FILE, Kb
from kbgate.tasks.settings.sections import EVERYTHING
from kbgate.tasks.unfinished import refuse_pointer

Reading = tuple[list[Record], list[Problem]]
"""Records, and a problem for each line that is none."""
Read = Callable[[Path, Path], Reading]

CORPUS = "corpus.jsonl"
"""The cards of a folder in BEIR form."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A declared reader."""

    suffix: str
    read: Read
    """`f(path, root)`: root is the knowledge base's own folder, from which ids are made."""
    document: bool = False
    """True where one file is one card."""

    @property
    def summary(self) -> str:
        """One sentence, the docstring's first line."""
        return first_line(self.read)


READERS: Registry[Reader] = Registry("card reader", __name__)


def reader(*suffixes: str, document: bool = False) -> Callable[[Read], Read]:
    """Declare a reader of the files that end so: `@reader(".md", ".txt", document=True)`."""

    def declare(read: Read) -> Read:
        for suffix in suffixes:
            READERS.add(suffix, Reader(suffix, read, document))
        return read

    return declare


def read_cards(path: Path, kb: Kb, own: Collection[str] = ()) -> tuple[list[Record], list[Problem], LeftOut]:
    """The raw records of whatever stands at a path: a file, a BEIR folder, a folder of documents; raises `InputError`.

    Beside them the files of a folder of documents that are not read, by the reason; `own`: those that are the suite's own.
    """
    documents = [name for name, part in READERS.items() if part.document]
    if path.is_dir() and not os.path.lexists(path / CORPUS):
        listing = list_folder(path, kb, documents, own)
        if not listing.documents:
            rest = f"; not read: {told(listing.left_out)}" if listing.left_out else ""
            sentence = f"holds neither {CORPUS} nor any {' or '.join(documents)} file{rest}"
            raise InputError([Problem(path.name, 0, sentence)])
        readings = [_read_document(path / name, path) for name in listing.documents]
        return (
            [record for records, _ in readings for record in records],
            [lost for _, problems in readings for lost in problems],
            listing.left_out,
        )
    if path.exists() and (kb.include != EVERYTHING or kb.exclude):
        sentence = f"kb.include and kb.exclude are of a folder of documents, and {path.name} is none; remove them"
        raise InputError([Problem(FILE, 0, sentence)])
    return *_read_file(path / CORPUS if path.is_dir() else path, path, documents), {}


def _read_document(file: Path, root: Path) -> Reading:
    """One file of many: what is wrong with it hides nothing of the others."""
    try:
        return READERS[file.suffix.lower()].read(file, root)
    except InputError as error:
        return [], error.problems


def _read_file(file: Path, path: Path, documents: Sequence[str]) -> Reading:
    """The records of a file that holds many cards; `path`: as the suite names it, the file or its folder."""
    if file != path and file.is_symlink():
        sentence = "is a link, and no link in the folder of a knowledge base is followed; name what it stands for in [kb] path"
        raise InputError([Problem(file.name, 0, sentence)])
    suffix = file.suffix.lower()
    if suffix not in READERS or suffix in documents:
        tables = ", ".join(name for name in READERS if name not in documents)
        sentence = f"is none of {tables}, a BEIR folder or a folder of {' / '.join(documents)}"
        raise InputError([Problem(path.name, 0, sentence)])
    return READERS[suffix].read(file, file.parent)


@reader(".jsonl")
def read_json_lines(path: Path, root: Path) -> Reading:
    """One card a line; a file called corpus.jsonl is in BEIR form, where the id is `_id`."""
    records, problems = read_jsonl(path)
    if path.name != CORPUS:
        return records, problems
    return [Record(r.file, r.line, {("id" if k == "_id" else k): v for k, v in r.content.items()}) for r in records], problems


@reader(".csv")
def read_csv(path: Path, root: Path) -> Reading:
    """One card a row, every value as the text it is."""
    records, problems = read_table(path)
    # An empty value is left out, and a text may be empty.
    return [_unfold(Record(r.file, r.line, {"text": "", **r.content})) for r in records], problems


@reader(".parquet")
def read_parquet(path: Path, root: Path) -> Reading:
    """One card a row; a column of whole numbers beside the metadata is text: an id, a year, a topic."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    refuse_pointer(path)
    try:
        table = pq.read_table(path)
        rows = table.to_pylist(maps_as_pydicts="strict")
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise InputError([Problem(path.name, 0, f"is not a readable Parquet file ({error})")]) from None
    names = [name for name in table.column_names if not name.startswith("__index_level_")]
    gaps = [name for name in names if not name.startswith("metadata") and pa.types.is_floating(table.schema.field(name).type)]
    if gaps:
        sentence = f"column '{gaps[0]}' holds floating-point numbers, as one of whole numbers does once a value is missing"
        raise InputError([Problem(path.name, 0, f"{sentence}; write it as text")])
    try:
        records = [
            Record(path.name, number, clean({name: _plain(row[name], name.startswith("metadata")) for name in names}))
            for number, row in enumerate(rows, start=1)
        ]
    except ValueError as error:
        raise InputError([Problem(path.name, 0, f"holds a value that cannot be taken ({error})")]) from None
    return [_unfold(record) for record in records], []


def _plain(value: JsonValue | dt.date, numbers: bool) -> JsonValue:
    """A value of Parquet as JSON has it: a date as text, and a whole number too unless `numbers` are kept."""
    if isinstance(value, dict):
        return {name: _plain(item, numbers) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, numbers) for item in value]
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and not numbers else value


@reader(".md", ".markdown", ".txt", document=True)
def read_document(path: Path, root: Path) -> Reading:
    """A Markdown or text file: front matter gives fields, the path gives the id, the first heading the title."""
    name = path.relative_to(root).as_posix()
    text = read_text(path, name)
    fields, text = read_front_matter(name, text)
    defaults = {"id": name.rsplit(".", 1)[0], "title": first_heading(text)}
    return [Record(name, 1, clean({**defaults, **fields, "text": text.strip()}))], []


def _unfold(record: Record) -> Record:
    """A flat row as a card: `topics` split at semicolons, `metadata.x` columns gathered."""
    content: dict[str, JsonValue] = {}
    metadata: dict[str, JsonValue] = {}
    for key, value in record.content.items():
        if key.startswith("metadata."):
            metadata[key.removeprefix("metadata.")] = value
        elif key == "topics" and isinstance(value, str):
            content[key] = [topic.strip() for topic in value.split(";") if topic.strip()]
        else:
            content[key] = value
    return Record(record.file, record.line, {**content, **({"metadata": metadata} if metadata else {})})
