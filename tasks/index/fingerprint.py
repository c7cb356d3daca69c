"""The four content hashes a verdict is bound to: index, golden, policy, baseline."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from typing import Any

import pandas as pd

from kbgate.tasks.domain import Model
from kbgate.tasks.records import canonical, digest
from kbgate.tasks.registry import METRICS
from kbgate.tasks.settings import Section, Suite
from kbgate.tasks.tables import rows_of

LENGTH = 16


def index_fingerprint(suite: Suite, rows: pd.DataFrame, members: pd.DataFrame, model: Model, versions: dict[str, int]) -> str:
    """What is searched: rows, their chunks, weights, prefixes, backend, [index]; `versions`: chunker and analyser."""
    state = hashlib.sha256()
    head = {
        "weights": model.weights,
        "prefixes": [suite.embedding.query_prefix, suite.embedding.passage_prefix],
        "normalised": True,
        "backend": f"chromadb {version('chromadb')}",
        "versions": versions,
        "index": _plain(suite.index),
    }
    state.update(canonical(head).encode())
    for record in (*rows_of(rows), *rows_of(members)):
        state.update(canonical(record).encode())
    return state.hexdigest()[:LENGTH]


def settings_fingerprint(suite: Suite, model: Model, versions: dict[str, int]) -> str:
    """How cards become rankings, whatever the cards: chunker, model, prefixes, index, retrieval, code versions."""
    return digest({**pipeline_of(suite), "weights": model.weights, "versions": versions}, LENGTH)


def pipeline_of(suite: Suite) -> dict[str, Any]:
    """The settings that make rankings of cards, as JSON values by section."""
    parts = {name: _plain(getattr(suite, name)) for name in ("chunking", "embedding", "index", "retrieval")}
    parts["embedding"].pop("batch")
    return {**parts, "kb": {"filterable": sorted(suite.kb.filterable)}}


def golden_fingerprint(cases: pd.DataFrame) -> str:
    """The cases: ids and content hashes, in any order."""
    return digest(sorted(zip(cases["id"], cases["hash"], strict=True)), LENGTH)


def policy_fingerprint(suite: Suite) -> str:
    """What counts as red: gates, k, unit, pass mark, method and its settings, metric versions."""
    policy = {
        "gates": {name: _plain(gate) for name, gate in suite.gates.items()},
        "floors": suite.floors,
        "slices": [_plain(s) for s in suite.slices],
        "allowances": [_plain(a) for a in suite.allowances],
        "acceptance": _plain(suite.acceptance) if suite.acceptance else None,
        "k": [suite.top_k, list(suite.cuts)],
        "unit": suite.unit,
        "pass_mark": suite.pass_mark,
        "retrieval": {
            name: _plain(suite.retrieval)[name] for name in ("method", "candidates", "rrf_k", "rerank", "min_similarity")
        },
        "metrics": {m.name: m.version for m in METRICS.values()},
    }
    return digest(policy, LENGTH)


def kb_fingerprint(cards: pd.DataFrame) -> str:
    """The cards as such: ids and content hashes."""
    return digest(sorted(zip(cards["id"], cards["hash"], strict=True)), LENGTH)


def _plain(section: Section) -> dict[str, Any]:
    # Through JSON, so that dates and tuples read the same whether they come from a file or from a default.
    plain: dict[str, Any] = json.loads(section.model_dump_json())
    return plain
