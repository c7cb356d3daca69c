"""A folder read as a suite: suite.toml against its schema, or a BEIR folder with the defaults."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from pydantic import JsonValue, ValidationError

from kbgate.tasks.errors import InputError, Problem, did_you_mean
from kbgate.tasks.gate.policy import policy_mistakes
from kbgate.tasks.index.chunking import CHUNKERS
from kbgate.tasks.records import DEEPEST, TOO_DEEP, clean, digest, problems_of, read_text
from kbgate.tasks.retrieval import RETRIEVERS, ScoreKind, lanes_of
from kbgate.tasks.settings import FILE, Suite
from kbgate.tasks.words.analyser import analyser_of

EXTERNAL = "external"
_LONGEST_NAME, _HASH = 63, 8
_DOTTED = re.compile(rf"""(?:^|[\[{{,])[ \t]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{DEEPEST}}}""", re.MULTILINE)
"""A key of more parts than there may be levels."""


def load_suite(folder: Path, floors: dict[str, float] | None = None) -> Suite:
    """Read and check a suite's settings; raises `InputError` with every mistake at its TOML path.

    `floors`: critical floors given on the command line, METRIC or METRIC@k.
    """
    given, folder = str(folder), folder.resolve()
    if not folder.is_dir():
        raise InputError([Problem(str(folder), 0, "is no folder; a suite is a folder with suite.toml")])
    if not (folder / FILE).exists():
        if not is_beir(folder):
            raise InputError([Problem(str(folder), 0, "has neither suite.toml nor a BEIR corpus.jsonl + queries.jsonl")])
        table: dict[str, JsonValue] = {
            "name": _name_of(folder.name),
            "kb": {"path": "."},
        }
    else:
        try:
            table = _read_table(folder / FILE)
            unknown = [key for key in ("folder", "given", "floors") if key in table]
            if unknown:
                raise InputError([Problem(FILE, 0, f"unknown key '{unknown[0]}'")])
        except RecursionError:
            raise InputError([Problem(FILE, 0, f"is not valid TOML: {TOO_DEEP}")]) from None
        except ValueError as error:  # tomllib's own, a number of thousands of digits, a day that no month has
            raise InputError([Problem(FILE, 0, f"is not valid TOML: {error}")]) from None
    try:
        suite = Suite.model_validate({**table, "folder": folder, "given": given, "floors": floors or {}})
    except ValidationError as error:
        raise InputError(problems_of(error, FILE, 0, Suite)) from None
    problems = [*_unknown_names(suite), *policy_mistakes(suite), *_not_available_yet(suite)]
    if problems:
        raise InputError(problems)
    return suite


def _name_of(folder: str) -> str:
    """A suite's name made from its folder's; a hash stands for letters that a name cannot have."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-")
    if folder.isascii() and name:
        return name[:_LONGEST_NAME]
    return f"{name[: _LONGEST_NAME - _HASH - 1] or 'beir'}-{digest(folder, _HASH)}"


MARKS = (FILE, "baseline.json", "queries.jsonl")
"""Files by which a folder is known as a suite: its settings, what was accepted, or questions in BEIR form."""
_NOT_LOOKED_INTO = {"node_modules", "__pycache__", "venv", "site-packages"}


def _read_table(path: Path) -> dict[str, JsonValue]:
    """A TOML file as it stands; raises ValueError and RecursionError."""
    text = read_text(path)
    if _DOTTED.search(text):  # tomllib takes time by the square of a key's parts
        raise ValueError(TOO_DEEP)
    table: dict[str, JsonValue] = clean(tomllib.loads(text))
    return table


def find_suites(folder: Path) -> list[str]:
    """The suites at and below a folder, as paths to type, at whatever depth, but not below hidden folders or links.

    One that lost its settings and kept its baseline is among them, to be missed. Raises `InputError` where a folder cannot be
    read.
    """
    marks: list[Path] = []
    if folder.is_dir():
        for place, folders, files in os.walk(folder, onerror=_refuse_unreadable):
            folders[:] = sorted(name for name in folders if is_looked_into(name))
            here = Path(place)
            marks += [here / name for name in MARKS if name in files]
            marks += [here / name / mark for name in folders if (here / name).is_symlink() for mark in MARKS]
    return suites_of(mark for mark in marks if mark.exists())


def is_looked_into(folder: str) -> bool:
    """Whether suites are looked for in a folder of this name."""
    return not folder.startswith(".") and folder not in _NOT_LOOKED_INTO


def suites_of(marks: Iterable[Path]) -> list[str]:
    """The suites that these files are the marks of, by path; a collection inside a suite is that suite's own."""
    found: dict[Path, set[str]] = {}
    for path in marks:
        found.setdefault(path.parent, set()).add(path.name)
    own = {place for place, names in found.items() if names - {"queries.jsonl"}}
    return sorted(str(place) for place in found if place in own or own.isdisjoint(place.parents))


def _refuse_unreadable(error: OSError) -> NoReturn:
    sentence = f"cannot be read ({error.strerror}), and there may be suites in it; give whoever runs kbgate access to it"
    raise InputError([Problem(str(error.filename), 0, sentence)])


def is_beir(folder: Path) -> bool:
    """Whether a folder is a collection in BEIR form."""
    return (folder / "corpus.jsonl").is_file() and (folder / "queries.jsonl").is_file()


def _unknown_names(suite: Suite) -> list[Problem]:
    """Methods that no registered part has, and settings the method has no use for."""
    problems = _unknown("chunking.method", suite.chunking.method, list(CHUNKERS))
    method = suite.retrieval.method
    if method == EXTERNAL:
        return problems
    problems += _unknown("retrieval.method", method, [*RETRIEVERS, EXTERNAL])
    try:
        analyser_of(suite)
    except InputError as error:
        problems += error.problems
    cosines = method not in RETRIEVERS or any(lane.scores == ScoreKind.COSINE for lane in lanes_of(method))
    if suite.retrieval.min_similarity is not None and not cosines:
        problems.append(Problem(FILE, 0, f"retrieval.min_similarity: {method} has no similarity; remove it"))
    return problems


def _unknown(path: str, name: str, names: list[str]) -> list[Problem]:
    return [] if name in names else [Problem(FILE, 0, f"{path}: unknown '{name}'; {did_you_mean(name, names)}")]


def _not_available_yet(suite: Suite) -> list[Problem]:
    """Settings the schema reserves and this version does not honour."""
    default = Suite(folder=suite.folder, name=suite.name)
    reserved = {
        "unit": suite.unit != "card",
        "embedding.endpoint": suite.embedding.endpoint != "",
        "retrieval.method = 'external'": suite.retrieval.method == EXTERNAL,
        "engine": suite.engine is not None,
    }
    for key in ("rerank", "python", "http", "chroma", "collection", "run_file"):
        reserved[f"retrieval.{key}"] = getattr(suite.retrieval, key) is not None
    for key in ("concurrency",):
        reserved[f"retrieval.{key}"] = getattr(suite.retrieval, key) != getattr(default.retrieval, key)
    return [Problem(FILE, 0, f"{key}: not available yet; remove it") for key, is_set in reserved.items() if is_set]
