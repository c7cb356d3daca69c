"""A folder read as a suite: suite.toml against its schema, or a BEIR folder with the defaults."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kbgate.tasks.errors import InputError, Problem, did_you_mean
from kbgate.tasks.records import clean, problems_of, read_text
from kbgate.tasks.registry import AGGREGATES, CHUNKERS, METRICS, RETRIEVERS, cuts_of, metric_of
from kbgate.tasks.settings import GATED_COUNTS, Suite

FILE = "suite.toml"


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
        table: dict[str, Any] = {
            "name": re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")[:63] or "beir",
            "kb": {"path": "."},
        }
    else:
        try:
            table = clean(tomllib.loads(read_text(folder / FILE)))
            unknown = [key for key in ("folder", "given", "floors") if key in table]
            if unknown:
                raise InputError([Problem(FILE, 0, f"unknown key '{unknown[0]}'")])
        except tomllib.TOMLDecodeError as error:
            raise InputError([Problem(FILE, 0, f"is not valid TOML: {error}")]) from None
    try:
        suite = Suite.model_validate({**table, "folder": folder, "given": given, "floors": floors or {}})
    except ValidationError as error:
        raise InputError(problems_of(error, FILE, 0, Suite)) from None
    problems = [*_unknown_names(suite), *_floor_mistakes(suite), *_not_available_yet(suite)]
    if problems:
        raise InputError(problems)
    return suite


def find_suites(folder: Path) -> list[str]:
    """The suites under a folder, by name; one that lost its settings and kept its baseline is among them, to be missed."""
    marks = (FILE, "baseline.json", "queries.jsonl")
    return sorted({str(file.parent) for mark in marks for file in folder.glob(f"*/{mark}")})


def is_beir(folder: Path) -> bool:
    """Whether a folder is a collection in BEIR form."""
    return (folder / "corpus.jsonl").is_file() and (folder / "queries.jsonl").is_file()


def _unknown_names(suite: Suite) -> list[Problem]:
    """Names that no registered part has."""
    problems = _unknown("chunking.method", suite.chunking.method, list(CHUNKERS))
    if suite.retrieval.method != "external":
        problems += _unknown("retrieval.method", suite.retrieval.method, [*RETRIEVERS, "external"])
    return [*problems, *_gate_mistakes(suite), *_slice_mistakes(suite)]


def _unknown(path: str, name: str, names: list[str]) -> list[Problem]:
    return [] if name in names else [Problem(FILE, 0, f"{path}: unknown '{name}'; {did_you_mean(name, names)}")]


def _gate_mistakes(suite: Suite) -> list[Problem]:
    problems = []
    for name, gate in suite.gates.items():
        bare = name.partition("@")[0]
        problems += _unknown(f"gates.{name}", bare if bare in METRICS else name, [*METRICS, *AGGREGATES, *GATED_COUNTS])
        if bare in METRICS:
            problems += _cut_mistakes(name, suite)
        elif name in GATED_COUNTS and (gate.ceiling is None or gate.tolerance is not None or gate.floor is not None):
            problems.append(Problem(FILE, 0, f"gates.{name}: takes a ceiling (a share of the cases), nothing else"))
        if name not in GATED_COUNTS and (bare in METRICS or bare in AGGREGATES):
            part, _ = metric_of(bare)
            if gate.tolerance is not None and not part.stored:
                sentence = f"gates.{name}: no baseline holds {bare}, so it has no tolerance; give a floor or a ceiling"
                problems.append(Problem(FILE, 0, sentence))
        if bare in METRICS and METRICS[bare].at_k and name == f"{bare}@{suite.top_k}" and bare in suite.gates:
            problems.append(Problem(FILE, 0, f"gates.{name}: is the figure of gates.{bare} too; write one line for it"))
        if gate.rule != "point" and gate.tolerance is None:
            problems.append(Problem(FILE, 0, f"gates.{name}.rule = '{gate.rule}': needs a tolerance to judge"))
        if gate.slack is not None and name != "newly_failing":
            problems.append(Problem(FILE, 0, f"gates.{name}.slack: only newly_failing has a slack"))
    return problems


def _slice_mistakes(suite: Suite) -> list[Problem]:
    problems = []
    for number, part_of in enumerate(suite.slices):
        bare = part_of.metric.partition("@")[0]
        problems += _unknown(f"slice.{number}.metric", bare, list(METRICS))
        if bare in METRICS:
            problems += _cut_mistakes(part_of.metric, suite)
            if not METRICS[bare].stored:
                problems.append(Problem(FILE, 0, f"slice.{number}.metric: no baseline holds {bare}, so it has no tolerance"))
    if suite.retrieval.min_similarity is not None and suite.retrieval.method == "bm25":
        problems.append(Problem(FILE, 0, "retrieval.min_similarity: bm25 has no similarity; remove it"))
    return problems


def _floor_mistakes(suite: Suite) -> list[Problem]:
    problems = []
    for name, floor in suite.floors.items():
        bare = name.partition("@")[0]
        if bare not in METRICS:
            problems.append(Problem("--floor", 0, f"unknown metric '{bare}'; {did_you_mean(bare, METRICS)}"))
        else:
            problems += [Problem("--floor", 0, p.sentence.removeprefix("gates.")) for p in _cut_mistakes(name, suite)]
        if not math.isfinite(floor):
            problems.append(Problem("--floor", 0, f"{name}: needs METRIC=NUMBER, found {floor}"))
    return problems


def _cut_mistakes(name: str, suite: Suite) -> list[Problem]:
    """A cut-off in a gate's name that is no number, is not computed, or that the metric does not have."""
    bare, _, cut = name.partition("@")
    if not cut:
        return []
    if not METRICS[bare].at_k:
        return [Problem(FILE, 0, f"gates.{name}: {bare} has no cut-off; write '{bare}'")]
    computed = cuts_of(METRICS[bare], suite)
    if not cut.isdecimal() or int(cut) not in computed:
        return [Problem(FILE, 0, f"gates.{name}: {cut} is none of the computed cut-offs {computed}")]
    return []


def _not_available_yet(suite: Suite) -> list[Problem]:
    """Settings the schema reserves and this version does not honour."""
    default = Suite(folder=suite.folder, name=suite.name)
    reserved = {
        "unit": suite.unit != "card",
        "embedding.endpoint": suite.embedding.endpoint != "",
        "retrieval.method = 'external'": suite.retrieval.method == "external",
        "engine": suite.engine is not None,
    }
    for key in ("rerank", "python", "http", "chroma", "collection", "run_file"):
        reserved[f"retrieval.{key}"] = getattr(suite.retrieval, key) is not None
    for key in ("concurrency",):
        reserved[f"retrieval.{key}"] = getattr(suite.retrieval, key) != getattr(default.retrieval, key)
    return [Problem(FILE, 0, f"{key}: not available yet; remove it") for key, is_set in reserved.items() if is_set]
