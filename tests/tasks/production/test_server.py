"""Production on a real Chroma server: numbers, leases, what an older kbgate left, and what a server says and does not say."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.errors import Overtaken, Refused, Undecided, Unmeasured
from kbgate.tasks.index.store import Client, close_store, connect
from kbgate.tasks.production import lease as leases
from kbgate.tasks.production import places, resolve, server
from kbgate.tasks.production.lease import Lease, leased
from kbgate.tasks.production.promotion import begin, promote
from kbgate.tasks.production.series import KEPT, Metadata, create, look, numbers
from kbgate.tasks.production.server import ServerProduction
from tests.servers import chroma_server
from tests.tasks.production.builds import NOW, build, fill, serve
from tests.tasks.production.promoter import evaluation_of, renamed
from tests.tasks.production.test_pointer import of_the_kbgate_before

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("chroma")) as address:
        yield address
        close_store(address)


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    """A server without collections."""
    client = connect(url)
    for name in look(client, url):
        client.delete_collection(name)
    yield client
    client.close()


@pytest.fixture
def production(url: str, client: Client, tmp_path: Path) -> ServerProduction:
    return ServerProduction(tmp_path, "faq", url, "answers")


def test_readers_follow_the_highest_number_in_one_line(production: ServerProduction, url: str, client: Client) -> None:
    with pytest.raises(Refused, match="nothing was ever promoted"):
        resolve(url)
    fill(production, build(1))
    for _ in range(KEPT + 6):
        serve(production, 1)
        production.settle()
    assert list(numbers(look(client, url), "answers.pointer")) == list(range(7, 7 + KEPT)), "by number: 11 comes after 9"
    served, place = resolve(url)
    assert (served.build, place) == (build(1), url)
    assert resolve(url, "answers") == (served, place)
    with pytest.raises(Refused, match="did you mean 'answers'"):
        resolve(url, "answer")
    create(client, "notes.pointer.1", {"theirs": True})
    with pytest.raises(Refused, match="serves 2 productions; name one of them: answers, notes"):
        resolve(url)
    client.delete_collection(build(1))
    with pytest.raises(Refused, match="is not there; next: kbgate rollback"):
        resolve(url, "answers")


@pytest.mark.parametrize("says", [{"theirs": 1}, {"pointer": "{"}, {"pointer": '{"schema": 1, "previous": []}'}])
def test_a_number_kbgate_never_wrote_serves_nothing(
    says: Metadata, production: ServerProduction, url: str, client: Client
) -> None:
    serve(production, 1)
    create(client, "answers.pointer.99", says)
    for read in (production.read, lambda: resolve(url)):
        with pytest.raises((Refused, Unmeasured), match=r"answers\.pointer\.99.*to serve the number before it"):
            read()
    client.delete_collection("answers.pointer.99")
    assert production.read().served == build(1)


def test_the_pointer_of_an_older_kbgate_is_read_and_goes_on_being_right(
    production: ServerProduction, url: str, client: Client
) -> None:
    content = {"schema": 1, "target": of_the_kbgate_before(1, url), "previous": []}
    create(client, "answers", {"pointer": json.dumps(content)})
    fill(production, build(1))
    assert production.read().served == resolve(url)[0].build == build(1)
    serve(production, 2, 1)
    production.settle()
    copy = json.loads(look(client, url)["answers"]["pointer"])
    assert copy["target"]["build"] == build(2), "who reads the copy goes on reading"
    assert copy["schema"] == 2, "and an older kbgate refuses to promote over it"
    assert production.read().served == build(2)
    client.get_collection("answers").modify(metadata={"pointer": json.dumps(content)})  # a writer that woke up late
    assert production.read().served == build(2), "nobody here believes the copy"
    production.settle()
    assert json.loads(look(client, url)["answers"]["pointer"]) == copy


def test_a_collection_of_somebody_else_is_left_alone(production: ServerProduction, url: str, client: Client) -> None:
    create(client, "answers", {"theirs": True})
    serve(production, 1)
    production.settle()
    assert look(client, url)["answers"] == {"theirs": True}
    assert production.read().served == build(1)


def test_without_a_pointer_nothing_is_swept_and_all_is_kept(
    production: ServerProduction, url: str, client: Client, tmp_path: Path
) -> None:
    desk = ServerProduction(tmp_path / "home", "desk", url, "desk")
    evaluation = evaluation_of(tmp_path / "suite")
    for _ in range(2):
        fill(desk, renamed(evaluation).build)
    left = set(desk.builds())
    with desk.held():
        pointer, examined = begin(desk, NOW), renamed(evaluation)
        assert set(desk.builds()) == left
        fill(desk, examined.build)
        promote(desk, examined, NOW, pointer)
    assert {old.build for old in desk.read().previous} == left
    assert not any(old.known for old in desk.read().previous)
    assert set(desk.builds()) == {*left, examined.build}


def test_what_a_dead_promotion_left_is_fenced_before_it_is_swept(production: ServerProduction) -> None:
    fill(production, build(1))
    first = serve(production, 1)
    fill(production, build(2))
    with production.held():
        fenced = begin(production, NOW)
        assert (fenced.number, fenced.target, fenced.previous) == (2, first.target, first.previous)
        assert production.builds() == [build(1)]
        assert begin(production, NOW) == fenced, "only where something is swept"
    with pytest.raises(Overtaken):
        production.move(first.then("promoted", first.target, (), NOW))


def test_what_a_later_lease_claims_is_not_swept(
    production: ServerProduction, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "BEAT_S", 0.1)
    fill(production, build(1))
    serve(production, 1)
    with production.held():
        monkeypatch.setattr(Lease, "_beat", lambda self: None)
        assert production._lease is not None
        production._lease._stopped.set()  # as one that was stopped
        later = ServerProduction(production.home / "b", "faq", url, "answers")
        with later.held():
            fill(later, build(3))
            assert production.leftovers() == []
            assert later.leftovers() == [build(3)], "its own, which it is about to serve or to remove"


@pytest.mark.parametrize("created", [True, False])
def test_what_a_server_does_not_say_is_decided_by_what_stands_there(
    created: bool, production: ServerProduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(client: Client, name: str, metadata: Metadata) -> None:
        if created:
            create(client, name, metadata)
        raise ConnectionError("the answer was lost")

    monkeypatch.setattr(server, "create", lost)
    if created:
        serve(production, 1)
        assert production.read().served == build(1)
    else:
        with pytest.raises(Undecided, match="may be served or not"):
            serve(production, 1)


def test_a_pruned_number_that_is_free_again_serves_nobody(
    production: ServerProduction, client: Client, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped between its last look and its creation, for many moves."""
    late = serve(production, 1).then("promoted", production.read().target, (), NOW)
    old = look(client, url)
    for _ in range(KEPT + 2):
        serve(production, 3)
        production.settle()
    assert late.number not in numbers(look(client, url), "answers.pointer")
    looks = iter([old])
    monkeypatch.setattr(server, "look", lambda *given: next(looks, None) or look(*given))
    with pytest.raises(Overtaken, match=f"on to {build(3)}"):
        production.move(late)
    assert late.number not in numbers(look(client, url), "answers.pointer")
    assert production.read().served == build(3)


def test_a_lease_is_taken_once_it_ended_or_no_longer_beats(url: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BEAT_S", 0.1)
    with leased(url, "answers.lease") as first:
        time.sleep(0.5)  # it beats: who waits for three missing beats waits in vain
        with (
            pytest.raises(Refused, match=r"process \d+\) holds answers.lease.1 .* for ten minutes"),
            leased(url, "answers.lease", 1.0),
        ):
            pass
    with leased(url, "answers.lease") as second:
        second._stopped.set()
        began = time.monotonic()
        with leased(url, "answers.lease") as third:
            assert time.monotonic() - began > 0.3
    assert [first.number, second.number, third.number] == [1, 2, 3]


def test_ten_that_want_the_lease_hold_it_one_by_one(url: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BEAT_S", 0.5)
    inside, seen = set[int](), list[tuple[int, int]]()

    def hold() -> None:
        with leased(url, "answers.lease") as held:
            inside.add(held.number)
            seen.append((held.number, len(inside)))
            time.sleep(0.02)
            inside.discard(held.number)

    threads = [threading.Thread(target=hold) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(seen) == [(number, 1) for number in range(1, 11)]
    assert len(numbers(look(client, url), "answers.lease")) == KEPT


def test_a_server_that_is_gone_while_it_is_held_says_so(tmp_path: Path) -> None:
    with chroma_server(tmp_path) as url:
        production = ServerProduction(tmp_path, "faq", url, "answers")
        with production.held():
            serve(production, 1)
            dead: Any = ServerProduction(tmp_path, "faq", "http://127.0.0.1:9", "answers")
            with pytest.raises(Unmeasured, match="cannot be reached"), dead.held():
                pass
    for use in (production.read, lambda: places.resolve(url)):
        with pytest.raises(Unmeasured, match="cannot be re"):
            use()
    close_store(url)
