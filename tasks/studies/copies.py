"""A suite as plain files that anyone may spoil: its cards and cases written anew, whatever form they came in."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import tomli_w
from pydantic import JsonValue

from kbgate.tasks.domain import Card, Case, Evidence, Inputs, Predicate
from kbgate.tasks.index.models import identify_model
from kbgate.tasks.records import read_text, write_text
from kbgate.tasks.retrieval import needs_vectors
from kbgate.tasks.settings import FILE
from kbgate.tasks.studies.faults import Copy, Settings
from kbgate.tasks.tables import Value

Line = dict[str, JsonValue]
"""A line of a JSONL file."""
Nested = Value | Predicate | Mapping[str, Value] | Sequence[Predicate] | None
"""What metadata and predicates are made of."""


def copy_of(inputs: Inputs, day: str, count: int | None, draw: Random) -> Copy:
    """The suite as values, dated `day`; of so many cards, or all where None."""
    cards = list(inputs.kb.cards.values())
    cases = [inputs.golden.cases[name] for name in sorted(inputs.golden.cases)]
    if count is not None and count < len(cards):
        cards, cases = _part(cards, cases, count, draw)
    settings = _settings_of(inputs, day)
    if "allow" in settings:  # an exception for a case that is not asked would be a mistake
        asked = {case.id for case in cases}
        settings["allow"] = [allowed for allowed in settings["allow"] if allowed.get("case") in asked]
    return Copy(settings, cards, cases, day)


def _settings_of(inputs: Inputs, day: str) -> Settings:
    file = inputs.suite.folder / FILE
    settings: Settings = tomllib.loads(read_text(file)) if file.exists() else {}
    settings = {**settings, "name": inputs.suite.name, "as_of": dt.date.fromisoformat(day)}
    model = inputs.suite.folder / inputs.suite.embedding.model
    if model.is_dir():
        settings["embedding"] = {**settings.get("embedding", {}), "model": str(model.resolve())}
    kept = {name: value for name, value in settings.get("kb", {}).items() if name not in ("include", "exclude")}
    settings["kb"] = {**kept, "path": "cards.jsonl"}
    if not any("@" in name for name in settings.get("gates", {})) and not settings.get("slice"):
        settings["k_values"] = [inputs.suite.top_k]  # the other cut-offs judge nothing here
    return settings


def _part(cards: list[Card], cases: list[Case], count: int, draw: Random) -> tuple[list[Card], list[Case]]:
    """So many cards: half of them answers, and the cases all of whose gold is among them."""
    known = {card.id for card in cards}
    kept: set[str] = set()
    for case in draw.sample(cases, len(cases)):
        golds = golds_of(case) & known
        if len(kept | golds) <= count // 2:
            kept |= golds
    rest = [card.id for card in cards if card.id not in kept]
    kept |= set(draw.sample(rest, count - len(kept)))
    return [card for card in cards if card.id in kept], [case for case in cases if golds_of(case) <= kept]


def golds_of(case: Case) -> set[str]:
    """The cards of a case's groups."""
    return {card for group in case.groups for card in group}


def card_line(card: Card) -> Line:
    """A card as it may stand in a file."""
    line: Line = {
        "language": card.language,
        "concept": card.concept,
        "description": card.description,
        "tier": card.tier,
        "domain": card.domain,
        "topics": [*card.topics],
        "metadata": plain(card.metadata),
        "valid_from": card.valid_from,
        "valid_until": card.valid_until,
    }
    return {"id": card.id, "title": card.title, "text": card.text, **{name: value for name, value in line.items() if value}}


def case_line(case: Case) -> Line:
    """A case as it may stand in a file."""
    line: Line = {
        "language": case.language,
        "filter": plain(case.filter),
        "entitled": plain(case.entitled),
        "right_filter": plain(case.right_filter),
        "canary": case.canary,
        "cluster": case.cluster,
        "numeric": case.numeric,
        "attack": case.attack,
        "topic": case.topic,
        "intent": case.intent,
        "evidence": [_evidence_line(evidence) for evidence in case.evidence],
    }
    if not case.evidence:
        line |= {"groups": [[*group] for group in case.groups], "grades": {**case.grades}}
    return {"id": case.id, "query": case.query, "kind": case.kind, **{name: value for name, value in line.items() if value}}


def _evidence_line(evidence: Evidence) -> Line:
    line: Line = {"card": evidence.card, "text": evidence.text, "start": evidence.start, "end": evidence.end}
    return {name: value for name, value in line.items() if value is not None}


def plain(value: Nested) -> JsonValue:
    """Metadata or a predicate as JSON has them."""
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [plain(item) for item in value]


def write(copy: Copy, folder: Path, base: Path | None = None) -> None:
    """The copy as a suite's folder, with the baseline of `base`."""
    folder.mkdir(parents=True)
    write_text(folder / FILE, tomli_w.dumps(copy.settings))
    _write_lines(folder / "cards.jsonl", [{**card_line(card), **copy.written.get(card.id, {})} for card in copy.cards])
    _write_lines(folder / "golden.jsonl", [case_line(case) for case in copy.cases])
    for path in sorted(base.glob("baseline.*")) if base else ():
        shutil.copy(path, folder / path.name)


def _write_lines(path: Path, lines: list[Line]) -> None:
    write_text(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def other_models(inputs: Inputs, root: Path) -> dict[str, str]:
    """The suite's own model with another way of pooling: other vectors from the same weights, and nothing to download.

    None where the suite's method asks for no vectors.
    """
    if not needs_vectors(inputs.suite):
        return {}
    model = identify_model(inputs.suite)
    pooling = model.folder / "1_Pooling" / "config.json"
    if not pooling.is_file():
        return {}
    folders = {}
    for name in ("cls", "max"):
        folder = root / name
        shutil.copytree(model.folder, folder)
        settings = json.loads(pooling.read_text(encoding="utf-8"))
        settings |= {key: False for key in settings if key.startswith("pooling_mode")}
        settings["pooling_mode_cls_token" if name == "cls" else "pooling_mode_max_tokens"] = True
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        folders[name] = str(folder)
    return folders
