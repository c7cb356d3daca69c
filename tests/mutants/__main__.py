"""Draw two samples of mutants, try them, print the survivors; exit 1 where too many survive."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.mutants.places import Mutant, change, read
from tests.mutants.stage import preload, stage
from tests.mutants.trial import Knowledge, Outcome, control, learn, trial

EQUIVALENT = Path(__file__).parent / "equivalent.toml"
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Sample:
    """A part of the code, how many mutants are drawn from it, and how many may survive."""

    name: str
    folders: tuple[str, ...]
    """Of the code; () for everything that no other sample has."""
    size: int
    share: float | None = None
    """May survive, of those tried; None: two, however many there are."""
    run_only: bool = False
    """Only what a fast test runs."""

    def allows(self, tried: int) -> int:
        return 2 if self.share is None else int(self.share * tried)


VERDICT = Sample("where the verdict is made", ("tasks/gate/", "tasks/comparison/"), 200)
REST = Sample("the other steps, as far as fast tests run them", (), 100, share=0.05, run_only=True)


def draw(sample: Sample, files: Sequence[Path], known: Knowledge, home: Path, seed: int) -> list[tuple[Mutant, set[str]]]:
    """So many mutants of different places, each with the tests that run it."""
    dice = random.Random(f"{seed} {sample.name}")
    sources = [read(path.relative_to(home).as_posix(), path.read_text(encoding="utf-8")) for path in files]
    places = [(source, place) for source in sources for place in source.places]
    dice.shuffle(places)
    drawn: list[tuple[Mutant, set[str]]] = []
    for source, place in places:
        if len(drawn) == sample.size:
            break
        mutant = change(source, place, dice)
        tests = known.tests_of(mutant, source.inside) if mutant else set()
        if mutant and (tests or not sample.run_only):
            drawn.append((mutant, tests))
    return drawn


def files_of(sample: Sample, home: Path) -> list[Path]:
    """The files a sample is drawn from."""
    every = sorted((home / "tasks").rglob("*.py"))
    taken = [path for path in every if path.relative_to(home).as_posix().startswith(VERDICT.folders)]
    return taken if sample.folders else [path for path in every if path not in taken]


def excused() -> dict[Key, str]:
    """The mutants a person found to change nothing, with the reason."""
    rows = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    return {(row["file"], row["original"], row["mutated"]): row["reason"] for row in rows}


def told(sample: Sample, outcomes: Iterable[Outcome], of: int) -> bool:
    """Print a sample's survivors as they come, then its rate; whether it keeps its limit."""
    alike, reasons, survivors, excusable, started = 0, excused(), 0, 0, time.monotonic()
    for count, outcome in enumerate(outcomes, start=1):
        alike = count
        mutant = outcome.mutant
        if outcome.noticed:
            continue
        if (mutant.file, mutant.original, mutant.mutated) in reasons:
            excusable += 1
            continue
        survivors += 1
        by = f"{outcome.tests} tests ran it" if outcome.tests else "no fast test runs it"
        print(f"\n[{count} of {of}] {mutant.file}:{mutant.line} survived, {by}\n{mutant.diff}", flush=True)
    tried = alike - excusable
    noticed = 100 * (tried - survivors) / max(tried, 1)
    allowed = sample.allows(tried)
    print(
        f"\n{sample.name}: {tried - survivors} of {tried} noticed ({noticed:.1f} %), {survivors} survived, {allowed} may; "
        f"{excusable} beside them change nothing; {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return survivors <= allowed


def main() -> int:
    arguments = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    arguments.add_argument("--seed", type=int, default=0, help="which sample is drawn")
    arguments.add_argument("--processes", type=int, default=2)
    arguments.add_argument("--sizes", type=int, nargs=2, default=(VERDICT.size, REST.size), help="of the two samples")
    given = arguments.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = stage(Path(name))
        home = folder / "src" / "kbgate"
        preload()
        known = learn(folder, given.processes)
        if known.red:
            for test, why in sorted(known.red.items()):
                print(f"{test}: {why[-600:]}")
            print(f"{len(known.red)} tests fail before anything is changed; nothing can be said of mutants")
            return 2
        left_out = f"{len(known.left_out)} left out: they want a process, a server or the model"
        print(f"{len(known.seconds)} fast tests learned in {time.monotonic() - started:.0f} s; {left_out}", flush=True)
        kept = []
        for sample in (replace(part, size=size) for part, size in zip((VERDICT, REST), given.sizes, strict=True)):
            files = files_of(sample, home)
            drawn = draw(sample, files, known, home, given.seed)
            texts = {path.relative_to(home).as_posix(): path.read_text(encoding="utf-8") for path in files}
            for sentence in (failed := control(drawn, texts, known, folder)):
                print(f"unchanged, and yet it fails: {sentence}")
            if failed:
                return 2
            kept.append(told(sample, trial(drawn, known, folder, given.processes), len(drawn)))
    print(f"seed {given.seed}: {time.monotonic() - started:.0f} s in all")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
