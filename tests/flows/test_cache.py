"""The vector cache is not believed: what someone wrote into it is found before there is a verdict."""

from __future__ import annotations

import datetime as dt
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kbgate.tasks import exam
from kbgate.tasks.clock import Clock
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.index.vectors import VectorCache
from kbgate.tasks.inputs.suite import load_suite
from tests.conftest import write_suite

CLI = Callable[..., int]
CARDS = {
    "food": "Take the tablets with food.",
    "alcohol": "Do not drink alcohol while you take them.",
    "driving": "Do not drive until you know how they affect you.",
    "fridge": "Keep the vials in the fridge, never in the freezer.",
    "missed": "If you miss a dose, leave it out and take the next one as usual.",
}


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small suite with a baseline, its cache in a home of its own."""
    from kbgate.flows.__main__ import run

    place = tmp_path_factory.mktemp("accepted")
    folder = write_suite(place / "tablets", "dense", CARDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBGATE_HOME", str(place / "home"))
        assert run(["baseline", "update", str(folder), "--reason", "first"]) == 0
    return place


@pytest.fixture
def suite(accepted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(accepted, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("KBGATE_HOME", str(tmp_path / "home"))
    return tmp_path / "tablets"


def cache_of(suite: Path) -> VectorCache:
    (folder,) = (suite.parent / "home" / "vectors").glob("v*/*")
    return VectorCache(folder.parents[1], folder.name)


def collapse(cache: VectorCache) -> None:
    """Every text gets the vector of the next one, and the digest fits: what was near is near something else."""
    keys: list[bytes] = []
    for file in sorted(cache.folder.glob("*.arrow")):
        with pa.memory_map(str(file)) as source:
            keys += pa.ipc.open_file(source).read_all().column("key").to_pylist()
    cached = cache.read(keys)
    for file in cache.folder.glob("*.arrow"):
        file.unlink()
    cache.write(keys, np.stack([cached[key] for key in keys[1:] + keys[:1]]))


@pytest.mark.parametrize("command", ["evaluate --fast", "evaluate --re-embed", "nightly", "promote", "ingested"])
def test_no_moment_believes_a_cache_that_is_not_the_models(
    command: str, suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = command.split()
    collapse(cache_of(suite))
    capsys.readouterr()
    assert kbgate(name, suite, *options) == 4
    said = "".join(capsys.readouterr())
    assert f"the vector cache {cache_of(suite).folder} is not what" in said
    assert f"next: rm -r {cache_of(suite).folder}" in said


def test_a_damaged_slice_is_told_and_its_texts_are_embedded_anew(
    suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in cache_of(suite).folder.glob("*.arrow"):
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2] + b"\0\0\0\0" + content[len(content) // 2 + 4 :])
    assert kbgate("evaluate", suite) == 0
    told = capsys.readouterr().err
    assert "of the vector cache is damaged" in told
    assert kbgate("evaluate", suite) == 0
    assert "of the vector cache is damaged" not in capsys.readouterr().err


def test_questions_that_were_only_looked_at_are_looked_at_again(suite: Path) -> None:
    """A pull request ranks every question to choose which to ask: the vectors of those it leaves out decide as well."""
    place = suite.parent / "home"
    inputs = exam.load(load_suite(suite), place)
    material, cases = exam.prepare(inputs, place), inputs.golden.cases
    vectors = exam.embed(inputs, material, cases, place)
    asked = {"food": cases["food"]}
    clock = Clock.of(inputs.suite, dt.datetime(2026, 6, 1, tzinfo=dt.UTC))
    assert exam.evaluate(inputs, material, asked, place, clock, touched=()).exam.asked == asked
    material.questions["missed"] = vectors[0]
    with pytest.raises(Unmeasured, match=r"\(question 'missed'\)"):
        exam.evaluate(inputs, material, asked, place, clock, touched=())


@pytest.mark.slow
def test_a_fresh_process_finds_it_beside_its_exam(suite: Path) -> None:
    command = [sys.executable, "-m", "kbgate.flows", "evaluate", str(suite)]
    assert subprocess.run(command, capture_output=True).returncode == 0
    collapse(cache_of(suite))
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 4, done.stderr
    assert "the same command again" in done.stderr
