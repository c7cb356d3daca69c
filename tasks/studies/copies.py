"""A suite as plain files that anyone may spoil: its cards and cases written anew, whatever form they came in."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import tomli_w

from kbgate.tasks.domain import Inputs
from kbgate.tasks.index.embedding import identify_model
from kbgate.tasks.inputs.suite import FILE
from kbgate.tasks.records import read_text, write_text
from kbgate.tasks.studies.faults import Copy
from kbgate.tasks.tables import rows_of


def copy_of(inputs: Inputs, day: str, cards: int | None, draw: Random) -> Copy:
    """The suite as values, dated `day`; of so many cards, or all where None."""
    file = inputs.suite.folder / FILE
    settings: dict[str, Any] = tomllib.loads(read_text(file)) if file.exists() else {}
    settings = {**settings, "name": inputs.suite.name, "as_of": dt.date.fromisoformat(day)}
    model = inputs.suite.folder / inputs.suite.embedding.model
    if model.is_dir():
        settings["embedding"] = {**settings.get("embedding", {}), "model": str(model.resolve())}
    settings["kb"] = {**settings.get("kb", {}), "path": "cards.jsonl"}
    if not any("@" in name for name in settings.get("gates", {})) and not settings.get("slice"):
        settings["k_values"] = [inputs.suite.top_k]  # the other cut-offs judge nothing here
    all_cards = [_card(row) for row in rows_of(inputs.kb.cards)]
    all_cases = [_case(row) for row in rows_of(inputs.golden.cases)]
    if cards is not None and cards < len(all_cards):
        all_cards, all_cases = _part(all_cards, all_cases, cards, draw)
    there = {case["id"] for case in all_cases}
    if "allow" in settings:  # an exception for a case that is not asked would be a mistake
        settings["allow"] = [allowed for allowed in settings["allow"] if allowed.get("case") in there]
    return Copy(settings, all_cards, all_cases, day)


def _part(
    cards: list[dict[str, Any]], cases: list[dict[str, Any]], count: int, draw: Random
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """So many cards: half of them answers, and the cases all of whose gold is among them."""
    there = {card["id"] for card in cards}
    kept: set[str] = set()
    for case in draw.sample(cases, len(cases)):
        golds = {card for group in groups(case) for card in group} & there
        if len(kept | golds) <= count // 2:
            kept |= golds
    rest = [card["id"] for card in cards if card["id"] not in kept]
    kept |= set(draw.sample(rest, count - len(kept)))
    answered = [case for case in cases if {card for group in groups(case) for card in group} <= kept]
    return [card for card in cards if card["id"] in kept], answered


def groups(case: dict[str, Any]) -> list[list[str]]:
    """The gold of a case in its general form."""
    return case.get("groups") or [[evidence["card"]] for evidence in case.get("evidence", ())]


def _card(row: dict[str, Any]) -> dict[str, Any]:
    kept = ("id", "title", "text", "language", "concept", "description", "tier", "domain", "topics", "metadata")
    card = {name: row[name] for name in kept if row[name]} | {"id": row["id"], "title": row["title"], "text": row["text"]}
    days = {name: row[name].isoformat() for name in ("valid_from", "valid_until") if row[name]}
    return {**card, **days}


def _case(row: dict[str, Any]) -> dict[str, Any]:
    kept = (
        "id", "query", "kind", "language", "filter", "entitled", "canary", "cluster", "split", "numeric", "attack", "topic",
        "intent", "right_filter",
    )  # fmt: skip
    case = {name: row[name] for name in kept if row[name]}
    gold: dict[str, Any] = {"evidence": [dict(e) for e in row["evidence"]]} if row["evidence"] else {}
    if row["groups"] and not gold:
        gold = {"groups": [list(group) for group in row["groups"]], "grades": dict(row["grades"])}
    return {**case, "kind": row["kind"], **gold}


def write(copy: Copy, folder: Path, base: Path | None = None) -> None:
    """The copy as a suite's folder, with the baseline of `base`."""
    folder.mkdir(parents=True)
    write_text(folder / FILE, tomli_w.dumps(copy.settings))
    for name, rows in (("cards.jsonl", copy.cards), ("golden.jsonl", copy.cases)):
        write_text(folder / name, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    for path in sorted(base.glob("baseline.*")) if base else ():
        shutil.copy(path, folder / path.name)


def other_models(inputs: Inputs, root: Path) -> dict[str, str]:
    """The suite's own model with another way of pooling: other vectors from the same weights, and nothing to download."""
    model = identify_model(inputs.suite)
    pooling = model.folder / "1_Pooling" / "config.json"
    if not pooling.is_file():
        return {}
    found = {}
    for name in ("cls", "max"):
        folder = root / name
        shutil.copytree(model.folder, folder)
        settings = json.loads(pooling.read_text(encoding="utf-8"))
        settings |= {key: False for key in settings if key.startswith("pooling_mode")}
        settings["pooling_mode_cls_token" if name == "cls" else "pooling_mode_max_tokens"] = True
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        found[name] = str(folder)
    return found
