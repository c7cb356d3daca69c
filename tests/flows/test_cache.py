"""The vector cache is not believed: what someone wrote into it is found before there is a verdict."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kbgate.tasks.index.vectors import VectorCache
from tests.conftest import write_lines

CLI = Callable[..., int]
CARDS = {
    "food": "Take the tablets with food.",
    "alcohol": "Do not drink alcohol while you take them.",
    "driving": "Do not drive until you know how they affect you.",
    "fridge": "Keep the vials in the fridge, never in the freezer.",
    "missed": "If you miss a dose, leave it out and take the next one as usual.",
}
SUITE = 'name = "tablets"\ntop_k = 1\nk_values = [1]\n[retrieval]\nmethod = "dense"\n[kb]\npath = "cards.jsonl"\n'


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kbgate: CLI) -> Path:
    """A small suite with a baseline, its cache in a home of its own."""
    folder = tmp_path / "tablets"
    folder.mkdir()
    write_lines(folder / "cards.jsonl", [{"id": name, "title": name, "text": text} for name, text in CARDS.items()])
    write_lines(folder / "golden.jsonl", [{"id": name, "query": text, "expected": [name]} for name, text in CARDS.items()])
    (folder / "suite.toml").write_text(SUITE)
    monkeypatch.setenv("KBGATE_HOME", str(tmp_path / "home"))
    assert kbgate("baseline", "update", folder, "--reason", "first") == 0
    return folder


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


@pytest.mark.parametrize("command", ["evaluate", "evaluate --fast", "evaluate --re-embed", "nightly", "promote", "ingested"])
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


@pytest.mark.slow
def test_a_fresh_process_finds_it_beside_its_exam(suite: Path) -> None:
    command = [sys.executable, "-m", "kbgate.flows", "evaluate", str(suite)]
    assert subprocess.run(command, capture_output=True).returncode == 0
    collapse(cache_of(suite))
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 4, done.stderr
    assert "the same command again" in done.stderr
