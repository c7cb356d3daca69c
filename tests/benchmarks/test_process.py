"""Whole-process times behind the README's figures, as ratios in one run: prints, asserts nothing about time."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from pathlib import Path

from tests.conftest import MEDICATION
from tests.servers import COMMANDS

RUNS = 5


def seconds(home: Path, *arguments: str) -> float:
    begun = time.perf_counter()
    done = subprocess.run([COMMANDS / "kbgate", *arguments], env={**os.environ, "KBGATE_HOME": str(home)}, capture_output=True)
    assert done.returncode == 0, done.stderr
    return time.perf_counter() - begun


def test_a_warm_exam_beside_the_bare_command(home: Path) -> None:
    seconds(home, "evaluate", str(MEDICATION))
    commands = {
        "kbgate --help": ("--help",),
        "kbgate check": ("check", str(MEDICATION)),
        "kbgate evaluate --fast": ("evaluate", str(MEDICATION), "--fast"),
        "kbgate evaluate": ("evaluate", str(MEDICATION)),
    }
    # In turn, so that whatever else the machine does falls on all of them.
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, arguments in commands.items():
            times[name].append(seconds(home, *arguments))
    bare = statistics.median(times["kbgate --help"])
    print()
    for name, taken in times.items():
        median = statistics.median(taken)
        print(f"{name:24} median {median:.2f} s ({min(taken):.2f} to {max(taken):.2f}), {median / bare:.1f} x the bare command")
