from __future__ import annotations

import errno
import multiprocessing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

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


@pytest.mark.parametrize("how", ["swapped", "one bit", "no digest", "of another model", "cut short", "no file of ours"])
def test_a_slice_that_is_not_as_it_was_written_counts_as_absent_and_is_told(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, vectors = VectorCache(tmp_path, "m"), unit(4)
    cache.write(keys(4)[:3], vectors[:3])
    (file,) = cache.folder.glob("*.arrow")
    cache.write(keys(4)[3:], vectors[3:])
    spoil(file, how, vectors)
    assert set(VectorCache(tmp_path, "m").read(keys(4))) == {keys(4)[3]}, "the other slice is believed"
    told = capsys.readouterr().err
    assert f"{file} of the vector cache is damaged" in told
    assert "its texts are embedded anew" in told
    assert not file.exists(), "it would be told at every run"


def spoil(file: Path, how: str, vectors: Vectors) -> None:
    if how == "cut short":
        file.write_bytes(file.read_bytes()[:-40])
    elif how == "no file of ours":
        file.write_text("what?")
    elif how == "one bit":
        content = bytearray(file.read_bytes())
        content[content.index(vectors[1].tobytes()) + 5] ^= 1
        file.write_bytes(content)
    else:
        with pa.memory_map(str(file)) as source:
            table = pa.ipc.open_file(source).read_all()
        if how == "swapped":
            first, second = vectors[0].tobytes(), vectors[1].tobytes()
            file.write_bytes(file.read_bytes().replace(first + second, second + first))
        elif how == "no digest":
            with pa.ipc.new_file(str(file), table.schema.remove_metadata()) as writer:
                writer.write_table(table.replace_schema_metadata(None))
        else:
            other = VectorCache(file.parents[2], "other")
            other.write(keys(3), vectors[:3])
            (moved,) = other.folder.glob("*.arrow")
            moved.rename(file)


def test_a_damaged_slice_is_joined_with_no_other(tmp_path: Path) -> None:
    cache, vectors = VectorCache(tmp_path, "m"), unit(60)
    cache.write(keys(1), vectors[:1])
    (file,) = cache.folder.glob("*.arrow")
    spoil(file, "no file of ours", vectors)
    for n in range(1, 60):
        cache.write(keys(60)[n : n + 1], vectors[n : n + 1])
    assert set(cache.read(keys(60))) == set(keys(60)[1:])


def test_a_slice_that_cannot_be_opened_is_told_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Too many open files are no damage."""
    cache = VectorCache(tmp_path, "m")
    cache.write(keys(1), unit(1))

    def refuse(path: str) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(pa, "memory_map", refuse)
        assert cache.read(keys(1)) == {}
    assert "Too many open files" in capsys.readouterr().err
    assert set(cache.read(keys(1))) == set(keys(1))


def test_vectors_of_another_length_are_joined_with_none(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path, "m")
    cache.write(keys(1, "other"), unit(1, size=4))
    for n, key in enumerate(keys(40)):
        cache.write([key], unit(40)[n : n + 1])
    assert set(cache.read(keys(40))) == set(keys(40))
