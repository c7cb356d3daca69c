"""Files read as the raw records of cards, one function a kind of file: `@reader(".jsonl")` on `f(path, root)`.

A reader gives records as they stand in the file, with their places; what a card is, `cards` says. One that reads a whole
file as one card says so (`document=True`): files of its kind are also collected from folders.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.inputs.folder import LeftOut, list_folder, told
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
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?P<head>.*?)^---[ \t]*(\n|\Z)", re.DOTALL | re.MULTILINE)


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
        readings = [READERS[(path / name).suffix.lower()].read(path / name, path) for name in listing.documents]
        return (
            [record for records, _ in readings for record in records],
            [lost for _, problems in readings for lost in problems],
            listing.left_out,
        )
    if path.exists() and (kb.include != EVERYTHING or kb.exclude):
        sentence = f"kb.include and kb.exclude are of a folder of documents, and {path.name} is none; remove them"
        raise InputError([Problem(FILE, 0, sentence)])
    return *_read_file(path / CORPUS if path.is_dir() else path, path, documents), {}


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
    return [_unfold(record) for record in records], problems


@reader(".parquet")
def read_parquet(path: Path, root: Path) -> Reading:
    """One card a row; what is null in a row is left out."""
    import pyarrow.parquet as pq

    refuse_pointer(path)
    try:
        rows = pq.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise InputError([Problem(path.name, 0, f"is not a readable Parquet file ({error})")]) from None
    records = []
    for number, row in enumerate(rows, start=1):
        given = {k: v for k, v in row.items() if v is not None and not k.startswith("__index_level_")}
        content: dict[str, JsonValue] = {k: v.isoformat() if isinstance(v, dt.date) else v for k, v in given.items()}
        metadata = content.get("metadata")
        if isinstance(metadata, dict):
            # A Parquet struct gives every row every key; what is null in this row was never there.
            content["metadata"] = {k: v for k, v in metadata.items() if v is not None}
        records.append(_unfold(Record(path.name, number, clean(content))))
    return records, []


@reader(".md", ".txt", document=True)
def read_document(path: Path, root: Path) -> Reading:
    """A Markdown or text file: front matter gives fields, the path gives the id, the first heading the title."""
    name = path.relative_to(root).as_posix()
    text = read_text(path, name)
    fields, text = _front_matter(name, text)
    heading = next((line.lstrip("#").strip() for line in text.split("\n") if line.startswith("#")), "")
    defaults = {"id": name.rsplit(".", 1)[0], "title": heading}
    return [Record(name, 1, clean({**defaults, **fields, "text": text.strip()}))], []


def _front_matter(name: str, text: str) -> tuple[Mapping[str, JsonValue], str]:
    """The fields between two rules at the beginning of a text, and the rest of it; raises `InputError`."""
    front = _FRONT_MATTER.match(text)
    if not front:
        return {}, text
    import yaml

    try:
        # The base loader reads every scalar as the text it is: 00123, NA and 1e5 stay what they are.
        fields = yaml.load(front["head"], Loader=yaml.BaseLoader) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        sentence = f"has front matter that is not valid YAML ({getattr(error, 'problem', None) or 'unreadable'})"
        raise InputError([Problem(name, mark.line + 2 if mark else 1, sentence)]) from None
    # Anything else between two rules is text that begins with a thematic break.
    return (fields, text[front.end() :]) if isinstance(fields, dict) else ({}, text)


def _unfold(record: Record) -> Record:
    """A flat row as a card: `topics` split at semicolons, `metadata.x` columns gathered."""
    content: dict[str, JsonValue] = {"text": ""}
    metadata: dict[str, JsonValue] = {}
    for key, value in record.content.items():
        if key.startswith("metadata."):
            metadata[key.removeprefix("metadata.")] = value
        elif key == "topics" and isinstance(value, str):
            content[key] = [topic.strip() for topic in value.split(";") if topic.strip()]
        else:
            content[key] = value
    return Record(record.file, record.line, {**content, **({"metadata": metadata} if metadata else {})})
