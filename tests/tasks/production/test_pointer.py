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

import pytest

from kbgate.tasks.errors import Overtaken, Refused, Unmeasured
from kbgate.tasks.identity import identity_of
from kbgate.tasks.index.store import close_store
from kbgate.tasks.production import folder, lock, resolve
from kbgate.tasks.production.folder import FolderProduction
from kbgate.tasks.production.places import candidate, open_production
from kbgate.tasks.production.pointer import NOTHING_SERVED, Production, is_build
from kbgate.tasks.production.promotion import sweep
from kbgate.tasks.production.server import ServerProduction
from kbgate.tasks.settings import Suite
from tests.conftest import ROOT
from tests.servers import chroma_server, free_port
from tests.tasks.production.builds import NOW, ROWS, build, fill, opened, serve, target


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
    first = serve(production, 2, 1)
    assert (production.read(), first.number) == (first, 1)
    second = serve(production, 3, 2, 1)
    assert (production.read(), second.number) == (second, 2)


def test_a_move_is_bound_to_the_pointer_it_was_made_for(production: Production) -> None:
    old = production.read()
    first = serve(production, 1)
    for seen in (old, first.then("promoted", target(2), (), NOW)):
        with pytest.raises(Overtaken, match=r"moved .*on to|was replaced"):
            production.move(seen.then("promoted", target(3), (), NOW))
    assert production.read() == first


def test_sweeping_removes_what_no_pointer_names(production: Production) -> None:
    for number in (1, 2, 3):
        fill(production, build(number))
    assert production.builds() == [build(1), build(2), build(3)]
    serve(production, 3, 1)
    sweep(production, NOW)
    assert production.builds() == [build(1), build(3)]
    with opened(production, build(1)) as collection:
        assert collection.count() == ROWS
    for number in (1, 3):
        production.discard(build(number))
    assert production.builds() == [build(1), build(3)], "what the pointer names is removed by nobody"


def test_builds_of_other_suites_and_other_folders_are_left_alone(tmp_path: Path) -> None:
    production = FolderProduction(tmp_path, "faq")
    fill(production, build(1))
    for other in (build(1, "faq-internal"), "notes", "faq-old"):
        (tmp_path / "versions" / other).mkdir()
    serve(production, 2)
    sweep(production, NOW)
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
    '{"schema": 1, "number": 1, "target": null, "previous": []}',
    '{"schema": 1, "target": {"x": 1}, "previous": []}',
    '{"schema": 1, "target": {"build": "b", "place": "p", "promoted": "t", "verdict": "s"}, "previous": []}',
    '{"schema": 1, "target": {"build": 7, "place": "p", "promoted": "t", "verdict": {}}, "previous": []}',
    '{"schema": 1, "target": null, "target": null, "previous": []}',
]


@pytest.mark.parametrize("content", [*(text.encode() for text in UNREADABLE), b"\xff\xfe"])
def test_a_pointer_that_cannot_be_read_moves_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_bytes(content)
    with pytest.raises(Refused, match="is not a pointer kbgate wrote"):
        FolderProduction(tmp_path, "faq").read()


def test_a_pointer_of_a_newer_kbgate_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "CURRENT").write_text('{"schema": 3, "target": null, "previous": []}')
    with pytest.raises(Refused, match="its schema is 3, this kbgate reads 1 and 2: upgrade kbgate"):
        FolderProduction(tmp_path, "faq").read()


def of_the_kbgate_before(number: int, place: str = "") -> dict[str, Any]:
    """A target as schema 1 wrote it."""
    fingerprints = {"index": "a" * 16, "golden": "b" * 16, "policy": "c" * 16, "baseline": "d" * 16}
    examined = {"verdict": "PASS", "run": "20260601T023000Z-abcdef", "fingerprints": fingerprints}
    place = place or f"versions/{build(number)}"
    return {"build": build(number), "place": place, "promoted": "2026-06-01T02:30:00+00:00", "verdict": examined}


def test_a_pointer_of_the_kbgate_before_is_read_and_renewed_by_the_next_move(tmp_path: Path) -> None:
    production = FolderProduction(tmp_path, "faq")
    content = {"schema": 1, "target": of_the_kbgate_before(2), "previous": [of_the_kbgate_before(1)]}
    (tmp_path / "CURRENT").write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
    pointer = production.read()
    assert (pointer.served, pointer.builds) == (build(2), {build(1), build(2)})
    assert pointer.target is not None
    assert not pointer.target.known, "nobody wrote down what it holds"
    serve(production, 3, 2)
    renewed = json.loads((tmp_path / "CURRENT").read_text())
    assert (renewed["schema"], renewed["number"]) == (2, 1)
    assert {"build", "place"} <= set(renewed["target"]), "what reads the file itself goes on reading"


@pytest.mark.parametrize("place", ["/tmp", "..", "versions/..", f"versions/{build(2)}", f"versions/{build(1)}/", "http://x"])
@pytest.mark.parametrize("key", ["target", "previous"])
def test_a_place_elsewhere_is_not_followed(place: str, key: str, tmp_path: Path) -> None:
    content: dict[str, Any] = {"schema": 1, "target": of_the_kbgate_before(1), "previous": [of_the_kbgate_before(1)]}
    strange = of_the_kbgate_before(1, place)
    content[key] = strange if key == "target" else [strange]
    (tmp_path / "CURRENT").write_text(json.dumps(content))
    with pytest.raises(Refused, match=f"not at versions/{build(1)}"):
        FolderProduction(tmp_path, "faq").read()
    with pytest.raises(Refused, match="not at versions/"):
        resolve(tmp_path)


@pytest.mark.parametrize("name", ["../x", "x", "", "a/b-0000000000000001-20260601T023001Z-abcdef"])
def test_a_build_of_a_name_kbgate_never_gives_is_not_followed(name: str, tmp_path: Path) -> None:
    content = {"schema": 1, "target": {**of_the_kbgate_before(1), "build": name, "place": f"versions/{name}"}, "previous": []}
    (tmp_path / "CURRENT").write_text(json.dumps(content))
    with pytest.raises(Refused, match="is not a name kbgate gives"):
        resolve(tmp_path)


def test_what_readers_of_an_index_may_rely_on() -> None:
    import kbgate.tasks.production as public

    assert public.__all__ == ["Examined", "Target", "resolve"]
    assert all(getattr(public, name).__doc__ for name in public.__all__)


def test_a_pointer_of_another_suite_is_refused(tmp_path: Path) -> None:
    serve(FolderProduction(tmp_path, "faq"), 1)
    with pytest.raises(Refused, match="which is not a build of 'other'; give each suite a place of its own"):
        FolderProduction(tmp_path, "other").read()


def test_without_a_pointer_nothing_is_rubbish(tmp_path: Path) -> None:
    production = FolderProduction(tmp_path, "faq")
    fill(production, build(1))
    sweep(production, NOW)
    assert production.builds() == [build(1)]


def test_a_build_that_could_not_be_finished_is_removed(tmp_path: Path) -> None:
    production = FolderProduction(tmp_path, "faq")

    def fail() -> None:
        with candidate(production, build(1)):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert production.builds() == []


def test_readers_resolve_to_a_folder(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="nothing was ever promoted"):
        resolve(tmp_path)
    production = FolderProduction(tmp_path, "faq")
    serve(production, 1)
    with pytest.raises(Refused, match="is not there; next: kbgate rollback"):
        resolve(tmp_path)
    assert not Path(production.place(build(1))).exists(), "a reader makes no store"
    fill(production, build(1))
    served, place = resolve(tmp_path)
    assert served == target(1)
    assert place == str(tmp_path / "versions" / build(1))


def test_a_server_that_is_not_there_measures_nothing(tmp_path: Path) -> None:
    with pytest.raises(Unmeasured, match="cannot be reached"):
        ServerProduction(tmp_path, "faq", f"http://127.0.0.1:{free_port()}", "faq").read()


def test_where_production_is(tmp_path: Path) -> None:
    suite = Suite(folder=tmp_path / "suite", name="faq")
    assert open_production(suite, tmp_path).home == tmp_path / "production" / identity_of(suite).key
    named = suite.model_copy(update={"production": suite.production.model_copy(update={"path": "../serving"})})
    assert open_production(named, tmp_path).home == tmp_path / "serving"


_SWITCHER = """
import sys
from pathlib import Path
from kbgate.tasks.production.folder import FolderProduction
from tests.tasks.production.builds import NOW, target
production, pointer = FolderProduction(Path(sys.argv[1]), "faq"), None
examined = target(1).verdict.model_copy(update={"run": "x" * 5000})
served = target(1).model_copy(update={"verdict": examined})
pointer = production.read()
print("ready", flush=True)
while True:
    pointer = pointer.then("promoted", served, (), NOW)
    production.move(pointer)
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
    with FolderProduction(home, "faq").held():
        held.set()
        done.wait(20)


def test_two_promotions_never_overlap_and_a_dead_one_frees_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path, held, done))
    other.start()
    assert held.wait(20)
    monkeypatch.setattr(folder, "LOCK_WAIT_S", 0.2)
    with pytest.raises(Refused, match="another promotion holds"), FolderProduction(tmp_path, "faq").held():
        pass
    other.kill()
    other.join()
    with FolderProduction(tmp_path, "faq").held():
        pass


def test_two_promotions_of_one_process_exclude_each_other_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "LOCK_WAIT_S", 0.2)
    with FolderProduction(tmp_path, "faq").held():
        with pytest.raises(Refused, match="for ten minutes"), FolderProduction(tmp_path, "faq").held():
            pass
        with pytest.raises(Refused), FolderProduction(tmp_path, "faq").held():  # the refused one freed nothing
            pass
    with FolderProduction(tmp_path, "faq").held():
        pass


def test_a_promotion_that_fails_frees_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "LOCK_WAIT_S", 0.2)
    with pytest.raises(ZeroDivisionError), FolderProduction(tmp_path, "faq").held():
        raise ZeroDivisionError
    with FolderProduction(tmp_path, "faq").held():
        pass


def test_without_a_lock_of_the_kernel_nothing_is_promoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "has_fcntl", False)
    with pytest.raises(Unmeasured, match="needs a lock of the kernel"), FolderProduction(tmp_path, "faq").held():
        pass


@pytest.mark.parametrize("url", ["http://user:sk-secret@chroma:8000", "http://chroma:8000/?token=sk-secret"])
def test_a_reader_is_told_that_its_address_holds_a_secret_and_not_which(url: str) -> None:
    with pytest.raises(Refused) as refused:
        resolve(url, "medication")
    assert "the address of the production server " in str(refused.value)
    assert "sk-secret" not in str(refused.value)
