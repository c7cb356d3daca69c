"""Content hashes: of what is searched, of how cards become rankings, of the cases and of the cards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version

from pydantic import JsonValue

from kbgate.tasks.domain import Cards, Cases, Model
from kbgate.tasks.records import canonical, digest
from kbgate.tasks.settings import Section, Suite
from kbgate.tasks.tables import Rows

LENGTH = 16


def index_fingerprint(suite: Suite, rows: Rows, model: Model | None, versions: Mapping[str, int | str]) -> str:
    """What is searched: rows, their chunks, weights, prefixes, backend, [index]; `versions`: of chunker and retrieval."""
    state = hashlib.sha256()
    head = {
        "weights": model.weights if model else "",
        "prefixes": [suite.embedding.query_prefix, suite.embedding.passage_prefix],
        "normalised": True,
        "backend": f"chromadb {version('chromadb')}",
        "versions": dict(versions),
        "index": _index(suite),
    }
    state.update(canonical(head).encode())
    for row, text, language, fields in zip(rows.ids, rows.texts, rows.languages, rows.fields, strict=True):
        state.update(canonical({"id": row, "text": text, "language": language, "fields": fields}).encode())
    for row, chunks in zip(rows.ids, rows.chunks, strict=True):
        for chunk in chunks:
            state.update(canonical({"row": row, "chunk": chunk, "card": chunk.rpartition("::")[0]}).encode())
    return state.hexdigest()[:LENGTH]


def settings_fingerprint(suite: Suite, model: Model | None, versions: Mapping[str, int | str]) -> str:
    """How cards become rankings, whatever they say: chunker, model, prefixes, index, retrieval, versions."""
    return digest({**pipeline_of(suite), "weights": model.weights if model else "", "versions": dict(versions)}, LENGTH)


def pipeline_of(suite: Suite) -> dict[str, dict[str, JsonValue]]:
    """The settings that make rankings of cards, as JSON values by section."""
    parts = {name: plain(getattr(suite, name)) for name in ("chunking", "embedding", "retrieval")} | {"index": _index(suite)}
    parts["embedding"].pop("batch")
    filterable: list[JsonValue] = [*sorted(suite.kb.filterable)]
    return {**parts, "kb": {"filterable": filterable}}


def _index(suite: Suite) -> dict[str, JsonValue]:
    """[index]; without an analyser it is what it was before there was one."""
    values = plain(suite.index)
    return values if suite.index.analyser else {name: value for name, value in values.items() if name != "analyser"}


def changed_pipeline(
    then: Mapping[str, Mapping[str, JsonValue]], now: Mapping[str, Mapping[str, JsonValue]]
) -> dict[str, tuple[JsonValue, JsonValue]]:
    """Settings that make rankings and differ, as `section.name`: (then, now); none where the earlier ones are not known."""
    return {
        f"{section}.{name}": (then.get(section, {}).get(name), value)
        for section, values in now.items()
        for name, value in {**dict.fromkeys(then.get(section, {})), **values}.items()
        if then and then.get(section, {}).get(name) != value
    }


def golden_fingerprint(cases: Cases) -> str:
    """The cases: ids and content hashes, in any order."""
    return digest(sorted((case.id, case.hash) for case in cases.values()), LENGTH)


def kb_fingerprint(cards: Cards) -> str:
    """The cards as such: ids and content hashes."""
    return digest(sorted((card.id, card.hash) for card in cards.values()), LENGTH)


def plain(section: Section) -> dict[str, JsonValue]:
    """A table of suite.toml as JSON values: dates and tuples read the same whether they are given or defaults."""
    values: dict[str, JsonValue] = json.loads(section.model_dump_json())
    return values
