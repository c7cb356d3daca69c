"""When the pointer may move, and where to: the rules of promotion, rollback and of the door for other people's tools."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kbgate.tasks.domain import Evaluation, Outcome
from kbgate.tasks.errors import InputError, Problem, Refused, did_you_mean
from kbgate.tasks.index.store import close_store, no_embedder, open_store
from kbgate.tasks.production.pointer import Pointer, Production, Target
from kbgate.tasks.records import append_line, parse_json, read_text
from kbgate.tasks.results import GREEN, Promotion
from kbgate.tasks.runs.runfiles import seal_of
from kbgate.tasks.settings import Suite


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
        production.discard(evaluation.build)
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
    opens(production, target)
    # The one that is left goes last: a rollback that is repeated goes further back, never to what was just left.
    others = tuple(old for old in (*pointer.previous, pointer.target) if old and old.build != build)
    production.move(Pointer(target, others[: suite.production.keep]))
    _audit(production, now, "rolled back", {"suite": suite.name, "build": build, "from": _name(pointer.target)})
    return target


def opens(production: Production, target: Target) -> None:
    """Raise `Refused` unless a target's collection is there and holds something."""
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


def check_verdict(path: Path, suite: Suite, current: Mapping[str, str], now: dt.datetime) -> dict[str, Any]:
    """For teams that promote with their own tools: raise `Refused` unless this verdict opens the door for this index.

    `current`: the four fingerprints as they are now, the index's being that of what is to be served. Refused: red or unsure,
    fast, of another index, golden set, baseline or policy, too old, or not what kbgate writes beside a PASS.
    """
    try:
        document = parse_json(read_text(path))
        objections = list(_objections(document, suite, current, now))
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        sentence = f"is no verdict kbgate wrote ({error!r}); name the verdict.json of a run"
        raise InputError([Problem(str(path), 0, sentence)]) from None
    against = [sentence for speaks, sentence in objections if speaks]
    if against:
        raise Refused(f"the verdict does not open the door: {'; '.join(against)}")
    return dict(document)


def _objections(document: Any, suite: Suite, current: Mapping[str, str], now: dt.datetime) -> Iterator[tuple[bool, str]]:
    if document["schema"] != 1:
        raise ValueError(f"schema {document['schema']}")
    name, code, age = document["verdict"], document["exit_code"], now - dt.datetime.fromisoformat(document["time"])
    grave = [reason["sentence"] for reason in document["reasons"] if reason["level"] not in ("supporting", "advisory")]
    failed = {kind: n for kind, n in document["outcomes"].items() if not Outcome(kind).measured}
    yield document["seal"] != seal_of(document), "it is not what kbgate wrote: its seal does not fit"
    yield document["suite"] != suite.name, f"it is of suite '{document['suite']}', not '{suite.name}'"
    yield name not in GREEN or code != 0 or isinstance(code, bool), f"the verdict is {name}, exit code {code}"
    yield document["provisional"] is not False, "it is provisional"
    yield bool(grave), f"it lists what no green verdict has: {grave[:1]}"
    yield bool(failed), f"questions failed: {failed}"
    yield document["mode"] != "full", f"it is of the {document['mode']} set; only the full set opens the door"
    for part, value in sorted(current.items()):
        found = document["fingerprints"][part]
        yield found != value, f"its {part} is {found or 'none'}, and is {value or 'none'} now"
    day = document["as_of"]
    yield suite.as_of not in ("today", dt.date.fromisoformat(day)), f"validity was judged on {day}, not {suite.as_of}"
    yield age > suite.production.max_age_delta, f"it is {age} old; {suite.production.max_age} is allowed"
    yield age < -dt.timedelta(minutes=5), f"it is dated {document['time']}, which is not yet"
    document["run"].strip()
