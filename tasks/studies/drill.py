"""The fire drill: mutation testing for a knowledge base and its golden set.

One known fault at a time is made on a copy of the suite's files. A process that is told nothing but the copy's folder sits
the exam and makes the diagnosis; only then are both held against what was done.
"""

from __future__ import annotations

import copy as copies
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

from kbgate.tasks.diagnosis.diagnosis import UNKNOWN
from kbgate.tasks.domain import Inputs
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.runs.archive import keep_cards
from kbgate.tasks.studies.copies import copy_of, groups, other_models, write
from kbgate.tasks.studies.faults import BAD_INPUT, FAULTS, Copy, Fault, Spoiled
from kbgate.tasks.studies.sitting import Sitting, accept, sit

LOOKED_INTO = 20
"""Golds the diagnosis looks into per mutant: enough to name one fault."""
MOST_WORKERS = 8
"""Each holds a model of its own."""
_TRIES = 30
"""Draws after which a fault is taken not to apply to a suite."""


@dataclass(frozen=True)
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
    named: str
    """The cause the diagnosis gave most often; "" where it gave none."""
    right: bool
    """Whether that is one of the fault's causes, and the thing it names is the thing that was spoiled."""
    said: str


@dataclass(frozen=True)
class Drill:
    """What a drill came to."""

    mutants: tuple[Mutant, ...]
    not_applicable: tuple[str, ...]
    """Faults this suite cannot have."""
    unprotected: tuple[str, ...]
    """Cards that are no case's gold: nobody would notice their loss."""
    cards: int


def drill(
    inputs: Inputs, day: str, home: Path, sample: int, seed: int, cards: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Drill:  # fmt: skip
    """Make `sample` mutants of a suite, have each examined and diagnosed, and say what was noticed and named.

    `cards`: how many cards to take, with the cases they answer; all where None. `progress`: told (done, total).
    """
    with tempfile.TemporaryDirectory(prefix="kbgate-drill-") as place:
        root = Path(place)
        original = copy_of(inputs, day, cards, Random(seed))
        base = root / "base"
        write(original, base)
        accept(base, home)
        keep_cards(home, original.settings["name"], load_cards(load_suite(base)).cards)
        first = sit(base, home, LOOKED_INTO)
        original.golds = tuple(sorted({card for _, card in first.held}))
        original.models = other_models(inputs, root / "models")
        drawn, never = _draw(original, sample, seed)
        folders = []
        for number, (_, _, mutant) in enumerate(drawn):
            folders.append(root / f"m{number:04d}")
            write(mutant, folders[-1], base)
        mutants = []
        workers = max(min(os.cpu_count() or 1, len(folders), MOST_WORKERS), 1)
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_settle) as pool:
            sittings = pool.map(_sit, [(str(folder), str(home)) for folder in folders])
            for (fault, spoiled, _), sitting in zip(drawn, sittings, strict=True):
                mutants.append(_judged(fault, spoiled, first, sitting))
                progress(len(mutants), len(drawn))
    asked = {card for case in original.cases for group in groups(case) for card in group}
    unprotected = tuple(sorted({card["id"] for card in original.cards} - asked))
    return Drill(tuple(mutants), tuple(never), unprotected, len(original.cards))


def _settle() -> None:
    """One thread a worker, for two that share two cores wait for each other; and none outlives whoever started it."""
    os.environ["OMP_NUM_THREADS"] = "1"
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(4)


def _sit(of: tuple[str, str]) -> Sitting:
    folder, home = of
    return sit(Path(folder), Path(home), LOOKED_INTO)


def _draw(original: Copy, sample: int, seed: int) -> tuple[list[tuple[Fault, Spoiled, Copy]], list[str]]:
    """Mutants, each fault in turn, none twice; and the faults that do not apply."""
    draw = Random(seed)
    drawn: list[tuple[Fault, Spoiled, Copy]] = []
    seen: set[str] = set()
    live = list(FAULTS.values())
    never = []
    while live and len(drawn) < sample:
        for fault in list(live):
            found = _mutant(fault, original, draw, seen)
            if found is None:
                live.remove(fault)
                if not any(made.name == fault.name for made, _, _ in drawn):
                    never.append(fault.name)
            elif len(drawn) < sample:
                drawn.append((fault, *found))
    return drawn, never


def _mutant(fault: Fault, original: Copy, draw: Random, seen: set[str]) -> tuple[Spoiled, Copy] | None:
    for _ in range(_TRIES):
        mutant = copies.deepcopy(original)
        spoiled = fault.spoil(mutant, draw)
        key = json.dumps([fault.name, mutant.settings, spoiled.target if spoiled else ""], default=str)
        if spoiled is not None and key not in seen:
            seen.add(key)
            return spoiled, mutant
    return None


def _judged(fault: Fault, spoiled: Spoiled, first: Sitting, sitting: Sitting) -> Mutant:
    new = [sentence for check, sentence in sitting.reasons if (check, sentence) not in first.reasons]
    noticed = sitting.verdict != "PASS" and bool(new)
    refused = sitting.verdict == "bad input"
    left = not refused and bool(first.held - sitting.held)
    fallen = () if refused else tuple(sorted(first.passing - sitting.passing))
    named, right = _named(fault, spoiled, sitting, new)
    return Mutant(
        fault=fault.name,
        target=spoiled.target,
        equivalent=not left and not refused and not sitting.findings,
        noticed=noticed,
        missed=() if noticed else fallen,
        warned=fallen if noticed and sitting.verdict == "WARN" else (),
        verdict=sitting.verdict,
        named=named,
        right=right,
        said=(new[0] if new else "") if not sitting.trouble else sitting.trouble,
    )


def _named(fault: Fault, spoiled: Spoiled, sitting: Sitting, new: Sequence[str]) -> tuple[str, bool]:
    """The cause given most often, and whether it and what it names are right."""
    if sitting.verdict == "bad input":
        at_it = not spoiled.names or any(name in sentence for name in spoiled.names for sentence in new)
        return BAD_INPUT, BAD_INPUT in fault.causes and at_it
    counts = Counter(finding.cause for finding in sitting.findings)
    if not counts:
        return "", False
    cause = min(counts, key=lambda name: (name == UNKNOWN, -counts[name], name))
    names = {name for finding in sitting.findings if finding.cause == cause for name in finding.culprits}
    return cause, cause in fault.causes and (not spoiled.names or bool(names & set(spoiled.names)))


def lines_of(found: Drill) -> Iterator[str]:
    """A drill as a person reads it."""
    for fault in sorted({mutant.fault for mutant in found.mutants}):
        own = [mutant for mutant in found.mutants if mutant.fault == fault]
        real = [mutant for mutant in own if not mutant.equivalent]
        noticed = [mutant for mutant in real if mutant.noticed]
        right = [mutant for mutant in noticed if mutant.right]
        named = Counter(mutant.named or "nothing" for mutant in noticed)
        told = ", ".join(f"{cause} {count}" for cause, count in named.most_common())
        yield (
            f"{fault:<20} {len(own):>4} made, {len(own) - len(real):>4} equivalent, noticed {_rate(len(noticed), len(real))}, "
            f"named rightly {_rate(len(right), len(noticed))}{': ' + told if told else ''}"
        )
    real = [mutant for mutant in found.mutants if not mutant.equivalent]
    noticed = [mutant for mutant in real if mutant.noticed]
    right = [mutant for mutant in noticed if mutant.right]
    yield (
        f"{'all':<20} {len(found.mutants):>4} made, {len(found.mutants) - len(real):>4} equivalent, "
        f"noticed {_rate(len(noticed), len(real))}, named rightly {_rate(len(right), len(noticed))}"
    )
    missed = [mutant for mutant in found.mutants if mutant.missed]
    warned = sum(bool(mutant.warned) for mutant in found.mutants)
    yield f"mutants that make a passing case fail: {len(missed)} unnoticed, {warned} only warned of (inside the slack)"
    for mutant in missed:
        yield f"  {mutant.fault} of {mutant.target}: {', '.join(mutant.missed)}"
    if found.not_applicable:
        yield f"faults this suite cannot have: {', '.join(found.not_applicable)}"
    yield f"cards whose loss nobody would notice: {len(found.unprotected)} of {found.cards}"
    for card in found.unprotected[:20]:
        yield f"  {card}"
    if len(found.unprotected) > 20:
        yield f"  and {len(found.unprotected) - 20} more"


def _rate(count: int, total: int) -> str:
    return f"{count}/{total}" + (f" ({100 * count / total:.0f} %)" if total else "")
