"""The fire drill: mutation testing for a knowledge base and its golden set.

One known fault at a time is made on a copy of the suite's files. A process that is told nothing but the copy's folder makes
the exam and the diagnosis; only then are both held against what was done.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from threading import Thread

from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.diagnosis.diagnosis import UNKNOWN
from kbgate.tasks.domain import Inputs
from kbgate.tasks.identity import identity_of
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.runs.archive import keep_cards
from kbgate.tasks.secret import withheld
from kbgate.tasks.studies.copies import copy_of, golds_of, other_models, write
from kbgate.tasks.studies.faults import BAD_INPUT, FAULTS, Copy, Fault, Spoiled
from kbgate.tasks.studies.trial import Trial, accept, trial_of

LOOKED_INTO = 20
"""Golds the diagnosis looks into per mutant: enough to name one fault."""
MOST_WORKERS = 8
"""Each holds a model of its own."""
_TRIES = 30
"""Draws after which a fault is taken not to apply to a suite."""
_LISTED = 20
"""Unprotected cards that are named before they are only counted."""

Progress = Callable[[int, int], None]
"""Called with (done, total)."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault, and what became of it."""

    fault: str
    target: str
    equivalent: bool
    """True where no gold left the top k, none is gone, and nothing was refused: there is nothing to notice."""
    noticed: bool
    missed: tuple[str, ...]
    """Passing cases that fail now although the gate says nothing: there must be none."""
    warned: tuple[str, ...]
    """Passing cases that fail now and are only warned of: their gold slipped inside the slack, and the index may ship."""
    verdict: str
    cause: str
    """The cause the diagnosis gave most often; "" where it gave none."""
    right: bool
    """Whether that is one of the fault's causes, and the thing it names is the thing that was spoiled."""
    detail: str
    """The first new reason of the verdict, or what kept the diagnosis from being made."""


@dataclass(frozen=True, slots=True)
class Drill:
    """What a drill came to."""

    mutants: tuple[Mutant, ...]
    not_applicable: tuple[str, ...]
    """Faults this suite cannot have."""
    unprotected: tuple[str, ...]
    """Cards that are no case's gold: nobody would notice their loss."""
    cards: int


@dataclass(frozen=True, slots=True)
class FaultRow:
    """The mutants of one fault, counted."""

    fault: str
    """"all" for all of them."""
    made: int
    equivalent: int
    noticed: int
    """Of those that are not equivalent."""
    right: int
    """Of those that were noticed: whose cause and culprit were named rightly."""
    causes: tuple[tuple[str, int], ...]
    """(cause, how often it was named), of the noticed ones, the commonest first; "nothing" where none was."""

    @property
    def real(self) -> int:
        """Mutants that there is something to notice about."""
        return self.made - self.equivalent


def drill(
    inputs: Inputs, day: str, home: Path, sample: int, seed: int, cards: int | None = None,
    progress: Progress = lambda done, total: None,
) -> Drill:  # fmt: skip
    """Make `sample` mutants of a suite, have each examined and diagnosed, and say what was noticed and named.

    `cards`: how many cards to take, with the cases they answer; all where None.
    """
    with tempfile.TemporaryDirectory(prefix="kbgate-drill-") as place:
        root = Path(place)
        original, base = copy_of(inputs, day, cards, Random(seed)), root / "base"
        write(original, base)
        accept(base, home)
        keep_cards(home, identity_of(load_suite(base)).archive, load_cards(load_suite(base)).cards)
        first = trial_of(base, home, LOOKED_INTO)
        original.golds = tuple(sorted({card for _, card in first.held}))
        original.models = other_models(inputs, root / "models")
        drawn, not_applicable = _draw(original, sample, seed)
        mutants = _mutants(drawn, root, home, first, progress)
    asked = {card for case in original.cases for card in golds_of(case)}
    unprotected = tuple(sorted({card.id for card in original.cards} - asked))
    return Drill(tuple(mutants), tuple(not_applicable), unprotected, len(original.cards))


def _mutants(
    drawn: Sequence[tuple[Fault, Spoiled, Copy]], root: Path, home: Path, first: Trial, progress: Progress
) -> list[Mutant]:
    """Each mutant written beside the base, examined in a process of its own, and held against what was done."""
    folders = [root / f"m{number:04d}" for number in range(len(drawn))]
    for folder, (_, _, copy) in zip(folders, drawn, strict=True):
        write(copy, folder, root / "base")
    mutants: list[Mutant] = []
    workers = max(min(os.cpu_count() or 1, len(folders), MOST_WORKERS), 1)
    with withheld(), ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_settle) as pool:
        trials = pool.map(_in_worker, [(str(folder), str(home)) for folder in folders])
        for (fault, spoiled, _), result in zip(drawn, trials, strict=True):
            mutants.append(_judged(fault, spoiled, first, result))
            progress(len(mutants), len(drawn))
    return mutants


def _settle() -> None:
    """One thread a worker, for two that share two cores wait for each other; and none outlives whoever started it."""
    os.environ["OMP_NUM_THREADS"] = "1"
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(4)


def _in_worker(folder_and_home: tuple[str, str]) -> Trial:
    folder, home = folder_and_home
    return trial_of(Path(folder), Path(home), LOOKED_INTO)


def _draw(original: Copy, sample: int, seed: int) -> tuple[list[tuple[Fault, Spoiled, Copy]], list[str]]:
    """Mutants, each fault in turn, none twice; and the faults that do not apply."""
    draw = Random(seed)
    drawn: list[tuple[Fault, Spoiled, Copy]] = []
    seen: set[str] = set()
    live = list(FAULTS.values())
    never = []
    while live and len(drawn) < sample:
        for fault in list(live):
            mutant = _mutant(fault, original, draw, seen)
            if mutant is None:
                live.remove(fault)
                if not any(made.name == fault.name for made, _, _ in drawn):
                    never.append(fault.name)
            elif len(drawn) < sample:
                drawn.append((fault, *mutant))
    return drawn, never


def _mutant(fault: Fault, original: Copy, draw: Random, seen: set[str]) -> tuple[Spoiled, Copy] | None:
    for _ in range(_TRIES):
        mutant = original.copy()
        spoiled = fault.spoil(mutant, draw)
        key = json.dumps([fault.name, mutant.settings, spoiled.target if spoiled else ""], default=str)
        if spoiled is not None and key not in seen:
            seen.add(key)
            return spoiled, mutant
    return None


def _judged(fault: Fault, spoiled: Spoiled, first: Trial, result: Trial) -> Mutant:
    """What became of a mutant; `first`: the trial of the suite as it was, whose reasons notice nothing."""
    new = [sentence for check, sentence in result.reasons if (check, sentence) not in first.reasons]
    noticed = result.verdict != VerdictName.PASS and bool(new)
    left = not result.refused and bool(first.held - result.held)
    failing = () if result.refused else tuple(sorted(first.passing - result.passing))
    cause, right = _named(fault, spoiled, result, new)
    return Mutant(
        fault=fault.name,
        target=spoiled.target,
        equivalent=not left and not result.refused and not result.findings,
        noticed=noticed,
        missed=() if noticed else failing,
        warned=failing if noticed and result.verdict == VerdictName.WARN else (),
        verdict=result.verdict,
        cause=cause,
        right=right,
        detail=result.trouble or (new[0] if new else ""),
    )


def _named(fault: Fault, spoiled: Spoiled, result: Trial, new: Sequence[str]) -> tuple[str, bool]:
    """The cause given most often, and whether it and what it names are right."""
    if result.refused:
        at_it = not spoiled.names or any(name in sentence for name in spoiled.names for sentence in new)
        return BAD_INPUT, BAD_INPUT in fault.causes and at_it
    counts = Counter(finding.cause for finding in result.findings)
    if not counts:
        return "", False
    cause = min(counts, key=lambda name: (name == UNKNOWN, -counts[name], name))
    names = {name for finding in result.findings if finding.cause == cause for name in finding.culprits}
    return cause, cause in fault.causes and (not spoiled.names or bool(names & set(spoiled.names)))


def rows_of(result: Drill) -> list[FaultRow]:
    """A row a fault, by name, and one for all."""
    faults = sorted({mutant.fault for mutant in result.mutants})
    rows = [_row(fault, [mutant for mutant in result.mutants if mutant.fault == fault]) for fault in faults]
    return [*rows, _row("all", result.mutants)]


def _row(fault: str, mutants: Sequence[Mutant]) -> FaultRow:
    noticed = [mutant for mutant in mutants if mutant.noticed and not mutant.equivalent]
    return FaultRow(
        fault,
        made=len(mutants),
        equivalent=sum(mutant.equivalent for mutant in mutants),
        noticed=len(noticed),
        right=sum(mutant.right for mutant in noticed),
        causes=tuple(Counter(mutant.cause or "nothing" for mutant in noticed).most_common()),
    )


def summary_lines(result: Drill) -> Iterator[str]:
    """What a drill came to beside its rows: what nobody noticed, what cannot happen, what nobody would see."""
    missed = [mutant for mutant in result.mutants if mutant.missed]
    warned = sum(bool(mutant.warned) for mutant in result.mutants)
    yield f"mutants that make a passing case fail: {len(missed)} unnoticed, {warned} only warned of (inside the slack)"
    for mutant in missed:
        yield f"  {mutant.fault} of {mutant.target}: {', '.join(mutant.missed)}"
    if result.not_applicable:
        yield f"faults this suite cannot have: {', '.join(result.not_applicable)}"
    yield f"cards whose loss nobody would notice: {len(result.unprotected)} of {result.cards}"
    for card in result.unprotected[:_LISTED]:
        yield f"  {card}"
    if len(result.unprotected) > _LISTED:
        yield f"  and {len(result.unprotected) - _LISTED} more"


def rate(count: int, total: int) -> str:
    """'3/4 (75 %)'."""
    return f"{count}/{total}" + (f" ({100 * count / total:.0f} %)" if total else "")
