"""When the pointer may move, and where to: the rules of promotion, rollback and of the door for other people's tools."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from kbgate.tasks.conclusions import Evaluation, Level, Promotion
from kbgate.tasks.domain import Mode
from kbgate.tasks.errors import Refused, did_you_mean
from kbgate.tasks.index.store import close_store, no_embedder, open_store
from kbgate.tasks.production.pointer import Examined, Pointer, Production, Target
from kbgate.tasks.records import append_line
from kbgate.tasks.runs.authentication import doubt_of
from kbgate.tasks.runs.document import VerdictDocument, read_document
from kbgate.tasks.runs.runfiles import seal_of
from kbgate.tasks.schema import Fingerprints
from kbgate.tasks.settings import Suite

_CLOCKS_APART = dt.timedelta(minutes=5)
"""How far two machines' clocks may differ."""


def promote(production: Production, evaluation: Evaluation, now: dt.datetime) -> Promotion:
    """Move the pointer to the build that was examined, where the exam lets it in; otherwise leave production untouched.

    The caller holds the production's lock since before the exam, so nothing has moved in between.
    """
    verdict, suite = evaluation.verdict, evaluation.exam.suite
    old = production.read()
    entry = {"suite": suite.name, "build": evaluation.build, "verdict": verdict.name, "from": _name(old.target)}
    if not verdict.name.green or evaluation.exam.run.mode != Mode.FULL:
        reason = verdict.reasons[0].sentence if verdict.reasons else "the fast subset opens no door"
        _audit(production, now, "refused", {**entry, "reason": reason})
        production.discard(evaluation.build)
        return Promotion(evaluation, promoted=False, served=_name(old.target))
    place = production.place(evaluation.build)
    target = Target(
        build=evaluation.build,
        place=place if "://" in place else f"versions/{evaluation.build}",
        promoted=now.isoformat(timespec="seconds"),
        verdict=Examined(verdict=verdict.name, run=evaluation.run_id, fingerprints=evaluation.fingerprints),
    )
    previous = ((old.target,) if old.target else ()) + old.previous
    production.move(Pointer(target=target, previous=previous[: suite.production.keep]))
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
    production.move(Pointer(target=target, previous=others[: suite.production.keep]))
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
    times = [dt.datetime.fromisoformat(card.updated_at) for card in evaluation.exam.kb.cards.values() if card.updated_at]
    if not times:
        return None
    newest = max(time if time.tzinfo else time.replace(tzinfo=dt.UTC) for time in times)
    return round((now - newest).total_seconds(), 1)


def _name(target: Target | None) -> str:
    return target.build if target else ""


def _audit(production: Production, now: dt.datetime, action: str, entry: Mapping[str, str | float | None]) -> None:
    append_line(production.home / "audit.jsonl", {"time": now.isoformat(timespec="seconds"), "action": action, **entry})


def check_verdict(path: Path, suite: Suite, current: Fingerprints, now: dt.datetime) -> VerdictDocument:
    """For teams that promote with their own tools: raise `Refused` unless this verdict opens the door for this index.

    `current`: the four fingerprints as they are now, the index's being that of what is to be served. Refused: red or unsure,
    fast, of another index, golden set, baseline or policy, too old, not what kbgate writes beside a PASS, or, where KBGATE_KEY
    is set, not authenticated by it.
    """
    document = read_document(path)
    objections = [sentence for speaks, sentence in _objections(document, suite, current, now) if speaks]
    if objections:
        refuse_verdict(suite, objections)
    return document


def refuse_verdict(suite: Suite, objections: Sequence[str]) -> NoReturn:
    """Raise `Refused`, with what speaks against a verdict and the command that gives another one."""
    command = f"kbgate evaluate {shlex.quote(str(suite.given))} --now"
    raise Refused(f"the verdict does not open the door: {'; '.join(objections)}; next: {command}")


def _objections(document: VerdictDocument, suite: Suite, current: Fingerprints, now: dt.datetime) -> Iterator[tuple[bool, str]]:
    name, code, age = document.verdict, document.exit_code, now - document.time
    grave = [r.sentence for r in document.reasons if r.level not in (Level.SUPPORTING, Level.ADVISORY)]
    failed = {kind.value: n for kind, n in document.outcomes.items() if not kind.measured}
    yield document.seal != seal_of(document), "it is not what kbgate wrote: its seal does not fit"
    doubt = doubt_of(document)
    yield bool(doubt), doubt
    yield document.suite != suite.name, f"it is of suite '{document.suite}', not '{suite.name}'"
    yield not name.green or code != 0, f"the verdict is {name}, exit code {code}"
    yield document.provisional, "it is provisional"
    yield bool(grave), f"it lists what no green verdict has: {grave[:1]}"
    yield bool(failed), f"questions failed: {failed}"
    yield document.mode != Mode.FULL, f"it is of the {document.mode} set; only the full set opens the door"
    written = document.fingerprints.plain()
    for part, value in sorted(current.plain().items()):
        yield written[part] != value, f"its {part} is {written[part] or 'none'}, and is {value or 'none'} now"
    made, judged = document.time.date(), document.valid_at.date() if document.valid_at else None
    yield judged is None, "it does not say when cards had to be valid"
    yield judged not in (None, made), f"validity was judged on {judged}, not on {made}"
    yield age > suite.production.max_age_delta, f"it is {age} old; {suite.production.max_age} is allowed"
    yield age < -_CLOCKS_APART, f"it is dated {document.time.isoformat(timespec='seconds')}, which is not yet"
