"""The pointer: one step, whatever happens, in a folder and on a real server."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.errors import Refused, Unmeasured
from kbgate.tasks.index.store import close_store, no_embedder, open_store
from kbgate.tasks.production import lease, resolve
from kbgate.tasks.production.folder import FolderProduction
from kbgate.tasks.production.lease import locked
from kbgate.tasks.production.places import candidate, open_production, sweep
from kbgate.tasks.production.pointer import NOTHING_SERVED, Examined, Pointer, Production, Target, is_build
from kbgate.tasks.production.server import ServerProduction
from kbgate.tasks.schema import Fingerprints
from kbgate.tasks.settings import Suite
from tests.conftest import ROOT
from tests.servers import chroma_server, free_port


def build(number: int, suite: str = "faq") -> str:
    return f"{suite}-{number:016x}-20260601T02300{number}Z-abcdef"


def target(number: int) -> Target:
    fingerprints = Fingerprints(index="a" * 16, golden="b" * 16, policy="c" * 16, baseline="d" * 16)
    return Target(
        build=build(number),
        place=f"versions/{build(number)}",
        promoted="2026-06-01T02:30:00+00:00",
        verdict=Examined(verdict=VerdictName.PASS, run="20260601T023000Z-abcdef", fingerprints=fingerprints),
    )


def serving(number: int, *previous: int) -> Pointer:
    return Pointer(target=target(number), previous=tuple(target(n) for n in previous))


def fill(production: Production, name: str) -> None:
    with candidate(production, name) as place:
        collection = open_store(place).create_collection(name, embedding_function=no_embedder())
        collection.add(ids=["a"], embeddings=np.eye(1, 4, dtype=np.float32))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("chroma")) as url:
        yield url
        close_store(url)


@pytest.fixture(params=["folder", pytest.param("server", marks=pytest.mark.slow)])
def production(request: pytest.FixtureRequest, tmp_path: Path) -> Production:
    if request.param == "folder":
        return FolderProduction(tmp_path, "faq")
    return ServerProduction(tmp_path, "faq", request.getfixturevalue("server"), f"faq-pointer-{tmp_path.name[-12:]}")


def test_the_pointer_reads_back_what_was_moved(production: Production) -> None:
    assert production.read() == NOTHING_SERVED
    pointer = serving(2, 1)
    production.move(pointer)
    assert production.read() == pointer
    production.move(serving(3, 2, 1))
    assert production.read().target == target(3)


def test_sweeping_removes_what_no_pointer_names(production: Production) -> None:
    for number in (1, 2, 3):
        fill(production, build(number))
    assert production.builds() == [build(1), build(2), build(3)]
    production.move(serving(3, 1))
    sweep(production)
    assert production.builds() == [build(1), build(3)]
    assert open_store(production.place(build(1))).get_collection(build(1), embedding_function=no_embedder()).count() == 1
    close_store(production.place(build(1)))
    for number in (1, 3):
        production.discard(build(number))
    assert production.builds() == []


def test_builds_of_other_suites_and_other_folders_are_left_alone(tmp_path: Path) -> None:
    production = FolderProduction(tmp_path, "faq")
    fill(production, build(1))
    for other in (build(1, "faq-internal"), "notes", "faq-old"):
        (tmp_path / "versions" / other).mkdir()
    production.move(serving(2))
    sweep(production)
    left = {path.name for path in (tmp_path / "versions").iterdir()}
    assert left == {build(1, "faq-internal"), "faq-old", "notes"}
    assert is_build(build(1), "faq")
    assert not is_build(build(1, "faq-internal"), "faq")


UNREADABLE = [
    "",
    "{",
    "[]",
    '{"schema": 2, "target": null, "previous": []}',
    '{"schema": 1}',
    '{"schema": 1, "target": {"x": 1}, "previous": []}',
    '{"schema": 1, "target": {"build": "b", "place": "p", "promoted": "t", "verdict": "s"}, "previous": []}',
    '{"schema": 1, "target": {"build": 7, "place": "p", "promoted": "t", "verdict": {}}, "previous": []}',
    '{"schema": 1, "target": null, "target": null, "previous": []}',
]


@pytest.mark.parametrize("content", [*(text.encode() for text in UNREADABLE), b"\xff\xfe"])
def test_a_pointer_that_cannot_be_read_moves_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_bytes(content)
    with pytest.raises(Refused, match="is no pointer kbgate wrote"):
        FolderProduction(tmp_path, "faq").read()


def test_a_pointer_of_the_kbgate_before_is_read_and_written_alike(tmp_path: Path) -> None:
    production = FolderProduction(tmp_path, "faq")
    fingerprints = {"index": "a" * 16, "golden": "b" * 16, "policy": "c" * 16, "baseline": "d" * 16}
    examined = {"verdict": "PASS", "run": "20260601T023000Z-abcdef", "fingerprints": fingerprints}
    place, moment = f"versions/{build(1)}", "2026-06-01T02:30:00+00:00"
    served = {"build": build(1), "place": place, "promoted": moment, "verdict": examined}
    text = json.dumps({"schema": 1, "target": served, "previous": [served]}, indent=2, sort_keys=True) + "\n"
    (tmp_path / "CURRENT").write_text(text)
    assert production.read() == serving(1, 1)
    production.move(production.read())
    assert (tmp_path / "CURRENT").read_text() == text


def test_what_readers_of_an_index_may_rely_on() -> None:
    import kbgate.tasks.production as public

    assert public.__all__ == ["Examined", "Target", "resolve"]
    assert all(getattr(public, name).__doc__ for name in public.__all__)


def test_a_pointer_of_another_suite_is_refused(tmp_path: Path) -> None:
    FolderProduction(tmp_path, "faq").move(serving(1))
    with pytest.raises(Refused, match="which is no build of 'other'; give each suite a place of its own"):
        FolderProduction(tmp_path, "other").read()


def test_without_a_pointer_nothing_is_rubbish(tmp_path: Path) -> None:
    production = FolderProduction(tmp_path, "faq")
    fill(production, build(1))
    sweep(production)
    assert production.builds() == [build(1)]


def test_a_build_that_could_not_be_finished_is_removed(tmp_path: Path) -> None:
    production = FolderProduction(tmp_path, "faq")

    def fail() -> None:
        with candidate(production, build(1)):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert production.builds() == []


def test_two_homes_that_promote_to_one_server_share_its_lock(tmp_path: Path) -> None:
    settings = Suite(folder=tmp_path, name="faq").production.model_copy(update={"url": "http://127.0.0.1:1"})
    suite = Suite(folder=tmp_path, name="faq", production=settings)
    assert open_production(suite, tmp_path / "a").home == open_production(suite, tmp_path / "b").home


def test_readers_resolve_to_a_folder(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="nothing was ever promoted"):
        resolve(tmp_path)
    FolderProduction(tmp_path, "faq").move(serving(1))
    served, place = resolve(tmp_path)
    assert served == target(1)
    assert place == str(tmp_path / "versions" / build(1))


def test_a_server_that_is_not_there_measures_nothing(tmp_path: Path) -> None:
    with pytest.raises(Unmeasured, match="cannot be reached"):
        ServerProduction(tmp_path, "faq", f"http://127.0.0.1:{free_port()}", "faq").read()


def test_where_production_is(tmp_path: Path) -> None:
    suite = Suite(folder=tmp_path / "suite", name="faq")
    assert open_production(suite, tmp_path).home == tmp_path / "production" / "faq"
    named = suite.model_copy(update={"production": suite.production.model_copy(update={"path": "../serving"})})
    assert open_production(named, tmp_path).home == tmp_path / "serving"


_SWITCHER = """
import sys, os
from pathlib import Path
from kbgate.tasks.production.folder import FolderProduction
from kbgate.tasks.production.pointer import Examined, Pointer, Target
from kbgate.tasks.schema import Fingerprints
from kbgate.tasks.conclusions import VerdictName
production, number = FolderProduction(Path(sys.argv[1]), ""), 0
examined = Examined(
    verdict=VerdictName.PASS, run="x" * 5000, fingerprints=Fingerprints(index="i", golden="g", policy="p", baseline="b")
)
print("ready", flush=True)
while True:
    number += 1
    target = Target(build=f"b{number}", place=f"versions/b{number}", promoted="t", verdict=examined)
    production.move(Pointer(target=target, previous=()))
"""


def test_a_reader_never_finds_a_part_and_a_kill_leaves_a_whole_pointer(tmp_path: Path) -> None:
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", _SWITCHER, tmp_path], stdout=subprocess.PIPE, cwd=ROOT)
        assert writer.stdout is not None
        writer.stdout.readline()
        until, reads = time.monotonic() + 0.3, 0
        while time.monotonic() < until:
            if (tmp_path / "CURRENT").exists():
                content = json.loads((tmp_path / "CURRENT").read_text())
                assert content["target"]["verdict"]["run"] == "x" * 5000
                reads += 1
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert reads > 0
        assert FolderProduction(tmp_path, "").read().target is not None


def _hold(home: Path, held: Any, done: Any) -> None:
    with locked(FolderProduction(home, "faq")):
        held.set()
        done.wait(20)


def test_two_promotions_never_overlap_and_a_dead_one_frees_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path, held, done))
    other.start()
    assert held.wait(20)
    monkeypatch.setattr(lease, "_LOCK_WAIT_S", 0.2)
    with pytest.raises(Refused, match="another promotion holds"), locked(FolderProduction(tmp_path, "faq")):
        pass
    other.kill()
    other.join()
    with locked(FolderProduction(tmp_path, "faq")):
        pass


def test_two_promotions_of_one_process_exclude_each_other_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_LOCK_WAIT_S", 0.2)
    with locked(FolderProduction(tmp_path, "faq")):
        with pytest.raises(Refused, match="for ten minutes"), locked(FolderProduction(tmp_path, "faq")):
            pass
        with pytest.raises(Refused), locked(FolderProduction(tmp_path, "faq")):  # the refused one freed nothing
            pass
    with locked(FolderProduction(tmp_path, "faq")):
        pass


def test_a_promotion_that_fails_frees_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "_LOCK_WAIT_S", 0.2)
    with pytest.raises(ZeroDivisionError), locked(FolderProduction(tmp_path, "faq")):
        raise ZeroDivisionError
    with locked(FolderProduction(tmp_path, "faq")):
        pass


def test_without_a_lock_of_the_kernel_nothing_is_promoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "has_fcntl", False)
    with pytest.raises(Unmeasured, match="needs a lock of the kernel"), locked(FolderProduction(tmp_path, "faq")):
        pass
