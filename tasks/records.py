"""Files read as records: the place of each is kept, hostile characters are cleaned, no type is guessed, no line lost.

Also the two things every writer needs: canonical JSON (the same content gives the same bytes) and replacing a file at once.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import os
import re
import unicodedata
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, JsonValue, ValidationError

from kbgate.tasks.characters import hidden_in, is_blank, made_visible
from kbgate.tasks.errors import InputError, Problem, did_you_mean
from kbgate.tasks.unfinished import refuse_unfinished

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


DEEPEST = 100
"""Levels of lists and objects in a file: no setting, card or case has use for more than a few."""
TOO_DEEP = f"it is nested too deeply: more than {DEEPEST} levels"
_LONGEST_FOUND = 200
"""Characters of a wrong value that an error repeats."""


class Record(NamedTuple):
    """One object read from a file, and where it stood."""

    file: str
    line: int
    content: dict[str, Any]


def clean(value: Any, depth: int = 0) -> Any:
    """The value with control characters and lone surrogates replaced one for one, so that character offsets stay.

    Raises ValueError where it is nested so deeply that whoever walks it after us would run out of stack.
    """
    if isinstance(value, str):
        return _UNPRINTABLE.sub("\ufffd", value)
    if isinstance(value, dict | list) and depth >= DEEPEST:
        raise ValueError(TOO_DEEP)
    if isinstance(value, dict):
        cleaned = [(clean(k), clean(v, depth + 1)) for k, v in value.items()]
        return no_key_twice(cleaned)
    if isinstance(value, list):
        return [clean(v, depth + 1) for v in value]
    return value


def nfc(text: str) -> str:
    """Text in the one Unicode form in which ids and excerpts are compared."""
    return unicodedata.normalize("NFC", text)


def one_line(name: str) -> str:
    """An id that can stand in a sentence, a table and a file; raises ValueError."""
    if name != name.strip() or len(name.splitlines()) > 1 or "\ufffd" in name or is_blank(name):
        raise ValueError("an id is one line of text without spaces at its ends or control characters")
    if hidden := hidden_in(name):
        raise ValueError(f"an id holds no character that nobody sees; remove {made_visible(hidden)}")
    return name


def canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces and no NaN: equal content, equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def digest(value: Any, length: int = 64) -> str:
    """The first hex digits of the sha256 of a value's canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:length]


def as_json(value: Any) -> JsonValue:
    """A value as JSON content: lists and dicts, whatever it was made of."""
    content: JsonValue = json.loads(canonical(value))
    return content


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _number(text: str) -> float:
    """A JSON number; one too large for a float would be infinite, and nothing that was meant."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs as a dict; raises ValueError where one would replace another."""
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key '{next(key for key in keys if keys.count(key) > 1)}' is there twice")
    return content


def parse_json(text: str) -> Any:
    """JSON without NaN and Infinity and without a key twice, cleaned; raises ValueError."""
    try:
        return clean(json.loads(text, parse_constant=_no_constant, parse_float=_number, object_pairs_hook=no_key_twice))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def read_text(path: Path, name: str = "") -> str:
    """A UTF-8 file, with or without a byte order mark, whatever its line ends; errors tell it by `name`.

    What git left unfinished is refused: a pointer where the file should be, the markers of a merge.
    """
    name = name or path.name
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError([Problem(name, 0, f"not found in {path.parent}")]) from None
    except UnicodeDecodeError as error:
        raise InputError([Problem(name, 0, f"is not UTF-8 (byte {error.start}); save it as UTF-8")]) from None
    except OSError as error:
        raise InputError([Problem(name, 0, f"cannot be read: {error.strerror}")]) from None
    refuse_unfinished(name, text)
    return text


def read_jsonl(path: Path) -> tuple[list[Record], list[Problem]]:
    """The objects of a JSONL file, and a problem for each line that is none."""
    records, problems = [], []
    # Not splitlines(): a card's text may hold U+2028 or a form feed, which end no line of a JSONL file.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            content = parse_json(line)
        except ValueError as error:
            problems.append(Problem(path.name, number, f"is not valid JSON ({error})"))
            continue
        if isinstance(content, dict):
            records.append(Record(path.name, number, content))
        else:
            problems.append(Problem(path.name, number, f"needs an object {{...}}, found {type(content).__name__}"))
    return records, problems


def read_table(path: Path, delimiter: str = ",") -> tuple[list[Record], list[Problem]]:
    """The rows of a CSV or TSV file with a header line, every value as the text it is, empty values left out.

    A row that is none is a problem at the line it begins on; an unclosed quotation mark is one, and swallows no row unseen:
    what may have taken other rows along says so.
    """
    # newline="": only the CSV reader says where a row ends; a text may hold U+2028 or a form feed.
    rows = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True)
    records: list[Record] = []
    problems: list[Problem] = []
    header: list[str] = []
    begins = 1
    with _long_fields():
        while True:
            try:
                row = next(rows)
            except StopIteration:
                break
            except csv.Error as error:
                sentence = f"is no CSV row ({error}); a quotation mark may be unclosed"
                problems.append(Problem(path.name, begins, sentence, takes_more=True))
                break
            if not header:
                header = [clean(name.strip()) for name in row]
                twice = sorted({name for name in header if header.count(name) > 1})
                again = (f"the column '{name}' is there twice" for name in twice)
                problems += [Problem(path.name, begins, sentence, takes_more=True) for sentence in again]
            elif row and len(row) != len(header):
                sentence = f"has {len(row)} fields where the header has {len(header)}"
                # Over several lines it may be several rows, between two quotation marks that were never meant as a pair.
                problems.append(Problem(path.name, begins, sentence, takes_more=rows.line_num > begins))
            elif row:
                content = {name: clean(value) for name, value in zip(header, row, strict=True) if value}
                records.append(Record(path.name, begins, content))
            begins = rows.line_num + 1
    return records, problems


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """A text may be longer than the 131,072 characters csv allows by default."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def problems_of(error: ValidationError, file: str, line: int, model: type[BaseModel]) -> Iterator[Problem]:
    """A pydantic error as sentences: what was found, what is allowed, the nearest known name."""
    for detail in error.errors(include_url=False):
        where = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "extra_forbidden":
            yield Problem(
                file, line, f"unknown key '{where}'; {did_you_mean(where.split('.')[-1], _keys(model, detail['loc']))}"
            )
        elif detail["type"] == "missing":
            yield Problem(file, line, f"'{where}' is missing")
        else:
            message = detail["msg"].removeprefix("Value error, ")
            # What looks like a URL may hold a secret, well written or not.
            withheld = isinstance(detail["input"], dict) or re.search("://|@", repr(detail["input"]))
            yield Problem(file, line, f"{where + ': ' if where else ''}{message}", "" if withheld else _shown(detail["input"]))


def _shown(value: object) -> str:
    """A wrong value, so that whoever mends it finds it."""
    written = repr(made_visible(value)) if isinstance(value, str) else repr(value)
    return written if len(written) <= _LONGEST_FOUND else f"{written[:_LONGEST_FOUND]}..."


def _keys(model: type[BaseModel], place: tuple[int | str, ...]) -> Iterable[str]:
    """The keys that are known where an unknown one stood."""
    for part in place[:-1]:
        by_alias = {f.alias or name: f for name, f in model.model_fields.items()}
        inner = by_alias[str(part)].annotation if str(part) in by_alias else None
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            model = inner
    return [f.alias or name for name, f in model.model_fields.items()]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place of its own beside a file, to write it anew: it replaces the file at the end of the block, all at once.

    After a crash the file is the old one or the new one, never a part; where the block failed it is the old one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        with temporary.open("rb+") as file:  # Windows flushes only what it may write to
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Replace a file at once with a text."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def append_line(path: Path, value: Any) -> None:
    """Append one JSON line in one write, so that writers which end together do not mix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+", buffering=0) as file:
        # A torn last line must not swallow this one: it begins with a line end of its own where one is missing.
        torn = file.tell() > 0 and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n"
        file.write((b"\n" if torn else b"") + canonical(value).encode() + b"\n")
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder survive a power cut; nothing on Windows, which opens no folder."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
