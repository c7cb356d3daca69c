"""When the pointer may move, and where to: the rules of promotion, rollback and of the door for other people's tools."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from kbgate.tasks.conclusions import Evaluation, Level
from kbgate.tasks.domain import Mode
from kbgate.tasks.errors import Overtaken, Refused, Unmeasured, did_you_mean
from kbgate.tasks.index.store import is_server
from kbgate.tasks.outcomes import Promotion
from kbgate.tasks.production.audit import note, record
from kbgate.tasks.production.contents import contents_of, count_of, verify
from kbgate.tasks.production.folder import VERSIONS
from kbgate.tasks.production.places import drop
from kbgate.tasks.production.pointer import Examined, Pointer, Production, Target
from kbgate.tasks.runs.authentication import doubt_of
from kbgate.tasks.runs.document import VerdictDocument, read_document
from kbgate.tasks.runs.runfiles import seal_of
from kbgate.tasks.schema import Fingerprints
from kbgate.tasks.settings import Suite

_CLOCKS_APART = dt.timedelta(minutes=5)
"""How far two machines' clocks may differ."""


def begin(production: Production, now: dt.datetime) -> Pointer:
    """What each holder does first: finish what a killed promotion left. Returns the pointer that this one is bound to."""
    record(production, production.read())
    production.settle()
    sweep(production, now)
    return production.read()


def sweep(production: Production, now: dt.datetime) -> None:
    """Remove the builds that nobody serves, keeps or makes. The caller holds the production."""
    if production.read().target is None:
        # No pointer, or one that was moved away: nothing says which of the builds are rubbish.
        return
    builds = production.leftovers()
    if not builds:
        return
    # Their makers may be stopped and not dead: after this none of them can move the pointer to what is removed here.
    fenced = production.fence(now)
    if fenced:
        record(production, fenced)
    for build in builds:
        production.discard(build)


def promote(production: Production, evaluation: Evaluation, now: dt.datetime, old: Pointer) -> Promotion:
    """Move the pointer to the build that was examined, where the exam lets it in; otherwise leave production untouched.

    The caller holds the production since before the exam. `old`: the pointer as it stood then; raises `Overtaken` where it is
    another one now.
    """
    verdict, suite, build = evaluation.verdict, evaluation.exam.suite, evaluation.build
    damage = _damage(production, old)
    entry = {"suite": suite.name, "build": build, "verdict": verdict.name, "from": old.served}
    if not verdict.name.green or evaluation.exam.run.mode != Mode.FULL:
        reason = verdict.reasons[0].sentence if verdict.reasons else "the fast subset opens no door"
        note(production, now, "refused", {**entry, "reason": reason})
        drop(production, build)
        return Promotion(evaluation, promoted=False, served=old.served, damage=damage)
    lag_s = freshness_lag(evaluation, now)
    try:
        if (served := production.read()).token != old.token:
            raise Overtaken(f"another promotion moved the pointer on to {served.served or 'nothing'} since this one read it")
        target = _let_in(production, evaluation, now)
        previous = (old.target, *old.previous)[: suite.production.keep] if old.target else _found(production, old, build)
        new = old.then("promoted", target, previous, now, lag_s)
        _move(production, old, new, target.contents.rows if target.contents else 0, now)
    except Overtaken as error:
        note(production, now, "overtaken", {**entry, "reason": str(error)})
        drop(production, build)
        raise
    return Promotion(evaluation, promoted=True, served=build, lag_s=lag_s, damage=damage)


def _let_in(production: Production, evaluation: Evaluation, now: dt.datetime) -> Target:
    """The build as a target, counted and digested; raises `Unmeasured` where it is not what was examined."""
    build = evaluation.build
    try:
        contents = contents_of(production, build)
    except Refused as refused:
        raise Unmeasured(str(refused)) from None
    if contents.rows != evaluation.counts.rows:
        raise Unmeasured(f"{build} holds {contents.rows} of the {evaluation.counts.rows} rows that were examined")
    return Target(
        build=build,
        place=_place(production, build),
        promoted=now.isoformat(timespec="seconds"),
        verdict=Examined(verdict=evaluation.verdict.name, run=evaluation.run_id, fingerprints=evaluation.fingerprints),
        contents=contents,
    )


def _found(production: Production, old: Pointer, but: str) -> tuple[Target, ...]:
    """Where nothing is served, every build that is there, newest first: one of them may have been. None is swept."""
    kept = {target.build: target for target in old.previous}
    builds = sorted((build for build in production.builds() if build != but), key=_made, reverse=True)
    return tuple(kept.get(build) or _unknown(production, build) for build in builds)


def _made(build: str) -> str:
    """When a build was made: its name ends with its run."""
    return "-".join(build.split("-")[-2:])


def _unknown(production: Production, build: str) -> Target:
    return Target(build=build, place=_place(production, build), promoted="", verdict=None)


def _place(production: Production, build: str) -> str:
    """What a pointer says of where a build is."""
    place = production.place(build)
    return place if is_server(place) else f"{VERSIONS}/{build}"


def _move(production: Production, old: Pointer, new: Pointer, counted: int, now: dt.datetime) -> None:
    """Move the pointer, count what it names, write it down, and remove what is neither served nor kept any more.

    What may be removed is listed before: a build that somebody begins after the move is not among it.
    """
    builds = [] if old.target is None else [build for build in production.leftovers() if build not in new.builds]
    production.move(new)
    try:
        rows = count_of(production, new.served)
    finally:
        record(production, new)
    if rows != counted:
        back = new.then("withdrawn", old.target, old.previous, now)
        production.move(back)
        record(production, back)
        served = old.served or "nothing"
        raise Unmeasured(f"{new.served} held {rows} of {counted} rows once the pointer named it; {served} is served again")
    production.settle()
    builds += [build for build in old.builds - new.builds if build not in builds]
    for build in builds:
        drop(production, build)


def roll_back(
    production: Production,
    suite: Suite,
    build: str,
    now: dt.datetime,
    examine: Callable[[Target], Target] | None = None,
) -> Target:
    """Move the pointer to an earlier target, the last one where `build` is ""; raises `Refused` where there is none.

    `examine`: gives a build of unknown state its exam, or raises `Refused`; without one such a build is refused.
    """
    pointer = production.read()
    kept = {target.build: target for target in pointer.previous}
    if not kept:
        raise Refused("there is no earlier target to return to")
    build = build or pointer.previous[0].build
    if build not in kept:
        raise Refused(f"'{build}' is no kept target; {did_you_mean(build, kept)}")
    target = kept[build]
    verify(production, target)
    if not target.known:
        if examine is None:
            raise Refused(f"the state of {build} is unknown; kbgate rollback examines it")
        target = examine(target)
    # The one that is left goes last: a rollback that is repeated goes further back, never to what was just left.
    others = tuple(old for old in (*pointer.previous, pointer.target) if old and old.build != build)
    if target.contents is None:
        raise Unmeasured(f"what {build} holds was not written down")
    new = pointer.then("rolled back", target, others[: suite.production.keep], now)
    _move(production, pointer, new, target.contents.rows, now)
    return target


def _damage(production: Production, pointer: Pointer) -> str:
    """What is wrong with the build that is served, in a sentence; "" for nothing."""
    if pointer.target is None:
        return ""
    try:
        verify(production, pointer.target)
    except Refused as refused:
        return str(refused)
    return ""


def freshness_lag(evaluation: Evaluation, now: dt.datetime) -> float | None:
    """Seconds from the newest card's `updated_at` to now, None where no card says when it was updated."""
    times = [dt.datetime.fromisoformat(card.updated_at) for card in evaluation.exam.kb.cards.values() if card.updated_at]
    if not times:
        return None
    newest = max(time if time.tzinfo else time.replace(tzinfo=dt.UTC) for time in times)
    return round((now - newest).total_seconds(), 1)


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
    yield document.provenance.merged is not None, "it is of a merge that is not checked out"
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
