from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np

from kbgate.tasks.index.vectors import VectorCache, key_of
from kbgate.tasks.tables import Vectors


def unit(count: int, seed: int = 0, size: int = 8) -> Vectors:
    vectors = np.random.default_rng(seed).standard_normal((count, size)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def keys(count: int, prefix: str = "") -> list[bytes]:
    return [key_of(prefix, str(n)) for n in range(count)]


def test_what_was_written_is_read_bit_by_bit(tmp_path: Path) -> None:
    cache, vectors = VectorCache(tmp_path, "m"), unit(5)
    cache.write(keys(5), vectors)
    found = VectorCache(tmp_path, "m").read(keys(7))
    assert set(found) == set(keys(5))
    assert np.array_equal(np.stack([found[k] for k in keys(5)]), vectors)
    assert VectorCache(tmp_path, "other").read(keys(5)) == {}


def test_prefix_and_text_do_not_run_together() -> None:
    assert key_of("query: ", "x") != key_of("query", ": x")


def test_damage_counts_as_absent(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path, "m")
    vectors = unit(3)
    vectors[1, 0] = np.nan
    vectors[2] *= 2
    cache.write(keys(3), vectors)
    assert set(cache.read(keys(3))) == {keys(3)[0]}
    (file,) = cache.folder.glob("*.arrow")
    file.write_bytes(file.read_bytes()[:-40])
    assert cache.read(keys(3)) == {}


def test_many_files_become_one_and_nothing_is_lost(tmp_path: Path) -> None:
    cache, vectors = VectorCache(tmp_path, "m"), unit(60)
    for n, key in enumerate(keys(60)):
        cache.write([key], vectors[n : n + 1])
    assert len(list(cache.folder.glob("*.arrow"))) < 30
    found = cache.read(keys(60))
    assert all(np.array_equal(found[key], vectors[n]) for n, key in enumerate(keys(60)))


def _write(folder: Path, seed: int) -> None:
    cache = VectorCache(folder, "m")
    for n in range(30):
        cache.write([key_of(str(seed), str(n))], unit(1, seed=seed * 100 + n))


def test_concurrent_writers_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(tmp_path, seed)) for seed in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    wanted = [key_of(str(seed), str(n)) for seed in range(3) for n in range(30)]
    assert set(VectorCache(tmp_path, "m").read(wanted)) == set(wanted)
