"""When the pointer may move, and where to: the rules of promotion, rollback and of the door for other people's tools."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.domain import Evaluation
from tasks.errors import InputError, Problem, Refused, did_you_mean
from tasks.fingerprint import policy_fingerprint
from tasks.indexing import close_store, no_embedder, open_store
from tasks.production import Pointer, Production, Target
from tasks.records import append_line, parse_json, read_text
from tasks.results import GREEN, Promotion
from tasks.settings import Suite


def promote(production: Production, evaluation: Evaluation, now: dt.datetime) -> Promotion:
    """Move the pointer to the build that was examined, where the exam lets it in; otherwise leave production untouched.

    The caller holds the production's lock since before the exam, so nothing has moved in between.
    """
    verdict, suite = evaluation.verdict, evaluation.exam.suite
    old = production.read()
    entry = {"suite": suite.name, "build": evaluation.build, "verdict": verdict.name, "from": _name(old.target)}
    if verdict.name not in GREEN or evaluation.exam.run.mode != "full":
        reason = verdict.reasons[0].sentence if verdict.reasons else "the fast subset opens no door"
        _audit(production, now, "refused", {**entry, "reason": reason})
        return Promotion(evaluation, promoted=False, served=_name(old.target))
    place = production.place(evaluation.build)
    target = Target(
        build=evaluation.build,
        place=place if "://" in place else f"versions/{evaluation.build}",
        promoted=now.isoformat(timespec="seconds"),
        verdict={"verdict": verdict.name, "run": evaluation.run_id, "fingerprints": dict(evaluation.fingerprints)},
    )
    previous = ((old.target,) if old.target else ()) + old.previous
    production.move(Pointer(target, previous[: suite.production.keep]))
    lag_s = freshness_lag(evaluation, now)
    _audit(production, now, "promoted", {**entry, "lag_s": lag_s})
    return Promotion(evaluation, promoted=True, served=target.build, lag_s=lag_s)


def roll_back(production: Production, suite: Suite, build: str, now: dt.datetime) -> Target:
    """Move the pointer to an earlier target, the last one where `build` is ""; raises `Refused` where there is none."""
    pointer = production.read()
    kept = {target.build: target for target in pointer.previous}
    if not kept:
        raise Refused("there is no earlier target to return to")
    build = build or pointer.previous[0].build
    if build not in kept:
        raise Refused(f"'{build}' is no kept target; {did_you_mean(build, kept)}")
    target = kept[build]
    _opens(production, target)
    others = tuple(old for old in (pointer.target, *pointer.previous) if old and old.build != build)
    production.move(Pointer(target, others[: suite.production.keep]))
    _audit(production, now, "rolled back", {"suite": suite.name, "build": build, "from": _name(pointer.target)})
    return target


def _opens(production: Production, target: Target) -> None:
    """A target that is to be served must be there."""
    place = production.place(target.build)
    try:
        if open_store(place).get_collection(target.build, embedding_function=no_embedder()).count() == 0:
            raise Refused(f"{target.build} is empty")
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"{target.build} cannot be opened ({error}); production stays as it is") from None
    finally:
        close_store(place)


def freshness_lag(evaluation: Evaluation, now: dt.datetime) -> float | None:
    """Seconds from the newest card's `updated_at` to now, None where no card says when it was updated."""
    times = [dt.datetime.fromisoformat(text) for text in evaluation.exam.kb.cards["updated_at"] if text]
    if not times:
        return None
    newest = max(time if time.tzinfo else time.replace(tzinfo=dt.UTC) for time in times)
    return round((now - newest).total_seconds(), 1)


def _name(target: Target | None) -> str:
    return target.build if target else ""


def _audit(production: Production, now: dt.datetime, action: str, entry: Mapping[str, Any]) -> None:
    append_line(production.home / "audit.jsonl", {"time": now.isoformat(timespec="seconds"), "action": action, **entry})


def check_verdict(path: Path, suite: Suite, index: str, now: dt.datetime) -> dict[str, Any]:
    """For teams that promote with their own tools: raise `Refused` unless this verdict opens the door for this index.

    Refused: red or inconclusive, fast, of another index, of another policy than the suite has now, or too old.
    """
    try:
        document = parse_json(read_text(path))
        if document["schema"] != 1:
            raise ValueError(f"schema {document['schema']}")
        name, mode, prints = document["verdict"], document["mode"], document["fingerprints"]
        taken = dt.datetime.fromisoformat(document["time"])
        age = now - taken
    except (ValueError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise InputError([Problem(path.name, 0, f"is no verdict kbgate wrote ({error!r})")]) from None
    policy = policy_fingerprint(suite)
    objections = [
        (document["suite"] != suite.name, f"it is of suite '{document['suite']}', not '{suite.name}'"),
        (name not in GREEN or document["exit_code"] != 0, f"the verdict is {name}"),
        (mode != "full", f"it is of the {mode} set; only the full set opens the door"),
        (prints["index"] != index, f"it is of index {prints['index']}, not {index}"),
        (prints["policy"] != policy, f"it was judged by policy {prints['policy']}; the suite's is {policy} now"),
        (age > suite.production.max_age_delta, f"it is {age} old; {suite.production.max_age} is allowed"),
        (age < -dt.timedelta(minutes=5), f"it is dated {taken}, which is not yet"),
    ]
    against = [sentence for speaks, sentence in objections if speaks]
    if against:
        raise Refused(f"the verdict does not open the door: {'; '.join(against)}")
    return dict(document)
