"""What the fast tests run, and whether they notice a mutant."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.mutants.places import Mutant
from tests.mutants.stage import DIED, TIMED_OUT, Job, Swapped, pytest_main, run
from tests.mutants.watch import Ledger, Notice

TESTS = Path("tests/tasks")
_DECLARED = "tests/tasks/test_declarations.py::"
"""Reads what modules declare, which is run when they are imported and by no test."""
_LEARNING = 1800.0
_LARGE, _HEAPS, _CONTROLS = 8, 4, 5
_FIRST = 15
"""Tests that are collected and run before the rest: most mutants are noticed by one of them."""
_PATIENCE = 60.0
"""Seconds beside four times what the tests usually take, after which a mutant hangs."""


@dataclass
class Knowledge:
    """Of the fast tests: how long each takes, and which of them run a line."""

    seconds: dict[str, float] = field(default_factory=dict)
    by_line: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    red: dict[str, str] = field(default_factory=dict)

    def tests_of(self, mutant: Mutant, inside: frozenset[int]) -> set[str]:
        """The tests that run a mutant's lines; outside of functions, all that run a function of its file.

        What an import runs concerns those that read declarations, too.
        """
        of_file = self.by_line.get(mutant.file, {})
        tests = set[str]().union(*(of_file.get(line, ()) for line in mutant.lines or inside))
        if not mutant.lines or "" in tests:
            tests |= {test for test in self.seconds if test.startswith(_DECLARED)}
        return tests - {""}


def learn(folder: Path, processes: int) -> Knowledge:
    """Run every test of the product's steps once, leave out what is not fast in kind, and keep who runs which line."""
    files = sorted((folder / TESTS).rglob("test_*.py"), key=lambda path: -path.stat().st_size)
    names = [str(path.relative_to(folder)) for path in files]
    # The largest by themselves, first; the many small ones together.
    parts = [*([name] for name in names[:_LARGE]), *(names[start::_HEAPS] for start in range(_LARGE, _LARGE + _HEAPS))]
    jobs = (Job(place, lambda part=part, place=place: _observe(folder, part, place), _LEARNING)  # type: ignore[misc]
            for place, part in enumerate(parts) if part)  # fmt: skip
    known = Knowledge()
    for place, told in run(jobs, folder, processes):
        if told in (TIMED_OUT, DIED):
            known.red[", ".join(parts[place])] = told
            continue
        costly = set(told["costly"])
        known.left_out |= costly
        known.red |= {test: why for test, why in told["failed"].items() if test not in costly}
        known.seconds |= {test: seconds for test, seconds in told["seconds"].items() if test not in costly}
        for file, lines in told["lines"].items():
            of_file = known.by_line.setdefault(file, {})
            for line, tests in lines.items():
                of_file.setdefault(int(line), set()).update(set(tests) - costly)
    return known


def _observe(folder: Path, files: Sequence[str], place: int) -> dict[str, Any]:
    home = folder / "src" / "kbgate"
    with Ledger(str(home / "tasks")) as ledger:
        code = pytest_main(files, ledger, str(folder / f"tmp-{place}"))
    if code not in (0, 1, 5):
        raise RuntimeError(f"pytest ended with {code}")
    _only_the_copy(home)
    lines = {str(Path(file).relative_to(home)): of_file for file, of_file in ledger.lines().items()}
    return {"failed": ledger.failed, "seconds": ledger.seconds, "costly": sorted(ledger.costly), "lines": lines}


def _only_the_copy(home: Path) -> None:
    strangers = [
        name
        for name, module in sys.modules.items()
        if name.startswith("kbgate.") and not str(getattr(module, "__file__", None) or home).startswith(str(home))
    ]
    if strangers:
        raise RuntimeError(f"not from the copy: {', '.join(strangers[:3])}")


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    noticed: str
    """The test that failed, or what else stopped it; "" for a survivor."""
    tests: int


def trial(mutants: Sequence[tuple[Mutant, set[str]]], known: Knowledge, folder: Path, processes: int) -> Iterator[Outcome]:
    """Whether any of its tests notices each mutant; those that noticed others of its file are asked first."""
    noticed: Counter[tuple[str, str]] = Counter()

    def jobs() -> Iterator[Job]:
        for place, (mutant, tests) in enumerate(mutants):
            if not tests:
                continue
            order = sorted(tests, key=lambda test: (-noticed[mutant.file, test], known.seconds.get(test, 0.0), test))
            seconds = _PATIENCE + 4 * sum(known.seconds.get(test, 0.0) for test in tests)
            yield Job(place, lambda m=mutant, o=order, p=place: _try(folder, m, o, p), seconds)  # type: ignore[misc]

    for place, told in run(jobs(), folder, processes):
        mutant, tests = mutants[place]
        if told in (TIMED_OUT, DIED):
            yield Outcome(mutant, told, len(tests))
            continue
        noticed[mutant.file, told["first"]] += 1
        yield Outcome(mutant, "" if told["code"] == 0 else told["first"] or f"pytest ended with {told['code']}", len(tests))
    for mutant, tests in mutants:
        if not tests:
            yield Outcome(mutant, "", 0)


def control(mutants: Sequence[tuple[Mutant, set[str]]], texts: Mapping[str, str], known: Knowledge, folder: Path) -> list[str]:
    """What fails where a file is put in place of itself, as every mutant is: nothing must, or every mutant is noticed."""
    of_file = {mutant.file: (mutant, tests) for mutant, tests in mutants if tests}
    unchanged = [
        (
            replace(mutant, source=texts[mutant.file]),
            set(sorted(tests, key=lambda test: known.seconds.get(test, 0.0))[:_CONTROLS]),
        )
        for mutant, tests in list(of_file.values())[:_CONTROLS]
    ]
    return [f"{outcome.mutant.file}: {outcome.noticed}" for outcome in trial(unchanged, known, folder, 1) if outcome.noticed]


def _try(folder: Path, mutant: Mutant, tests: list[str], place: int) -> dict[str, Any]:
    sys.meta_path.insert(0, Swapped(folder, mutant.file, mutant.source))
    notice, temporary = Notice(), folder / f"tmp-{place}"
    code = 0
    for part in (tests[:_FIRST], tests[_FIRST:]):
        if part and not code:
            code = pytest_main(["-x", *notice.asked(part)], notice, str(temporary))
    shutil.rmtree(temporary, ignore_errors=True)
    return {"code": code, "first": notice.first}
