"""An event is sent until a server has it, under one id, and not for ever."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from kbgate.flows import events as module
from kbgate.flows.events import emit
from kbgate.tasks.errors import KbgateError
from tests.conftest import MEDICATION
from tests.servers import free_port

BREAK_OFF = 0
"""In place of a status: the connection is closed without an answer."""


@contextmanager
def server(answers: list[int], port: int = 0) -> Iterator[tuple[str, list[Any]]]:
    """An API that answers so, one after the other, and what it was sent."""
    sent: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
            status = answers[min(len(sent), len(answers)) - 1]
            if status != BREAK_OFF:
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()
            self.close_connection = True

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", port), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}/api", sent
        finally:
            http.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAITS_S", (0.0, 0.0, 0.0))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_an_event_is_sent_as_prefect_reads_it() -> None:
    with server([204]) as (api, sent):
        told = emit(f"{api}/", "baselines/faq", {"batch": "evening", "ids": "", "path": ""})
    ((path, (event,)),) = sent
    assert path == "/api/events"
    assert (event["id"], event["event"]) == (told, "kb.ingested")
    assert event["resource"] == {"prefect.resource.id": "kbgate.suite.baselines/faq"}
    assert event["payload"] == {"suite": "baselines/faq", "batch": "evening", "ids": "", "path": ""}


def test_two_folders_of_one_name_are_two_suites(tmp_path: Path) -> None:
    with server([204]) as (api, sent):
        for team in ("a", "b"):
            emit(api, str(tmp_path / team / "faq"), {})
    named = [event["resource"]["prefect.resource.id"] for _, (event,) in sent]
    assert named == [f"kbgate.suite.{tmp_path.resolve()}/{team}/faq" for team in ("a", "b")]


@pytest.mark.parametrize("first", [[503], [503, 500, 502], [429], [BREAK_OFF], [BREAK_OFF, 503]])
def test_a_busy_server_is_asked_again_with_the_same_event(first: list[int]) -> None:
    with server([*first, 204]) as (api, sent):
        told = emit(api, "faq", {})
    assert len(sent) == len(first) + 1
    assert {event["id"] for _, (event,) in sent} == {told}


@pytest.mark.parametrize(("answer", "said"), [(503, "HTTP 503"), (BREAK_OFF, "RemoteProtocolError: ")])
def test_a_server_that_never_takes_it_is_asked_four_times(answer: int, said: str) -> None:
    with server([answer]) as (api, sent), pytest.raises(KbgateError, match=rf"not taken by the Prefect API \({said}"):
        emit(api, "faq", {})
    assert len(sent) == 4


def test_what_the_server_refuses_is_not_sent_again() -> None:
    with server([422]) as (api, sent), pytest.raises(KbgateError, match=r"\(HTTP 422\); nothing will be examined"):
        emit(api, "faq", {})
    assert len(sent) == 1


def test_a_server_that_comes_up_late_has_the_event_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first connection is refused; the server is there before the next."""
    import httpcore

    port, up = free_port(), threading.Event()
    connect = httpcore.SyncBackend.connect_tcp
    refused: list[str] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        try:
            return connect(*args, **kwargs)
        except httpcore.ConnectError:
            refused.append("refused")
            begin.set()
            assert up.wait(20)
            raise

    begin, ended, sent = threading.Event(), threading.Event(), []

    def come_up() -> None:
        assert begin.wait(20)
        with server([204], port) as (_, received):
            up.set()
            ended.wait(20)
            sent.extend(received)

    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", counted)
    late = threading.Thread(target=come_up)
    late.start()
    told = emit(f"http://127.0.0.1:{port}/api", "faq", {})
    ended.set()
    late.join()
    assert refused == ["refused"]
    assert [event["id"] for _, (event,) in sent] == [told]


def test_a_server_that_is_not_there_is_an_error_and_no_run(
    kbgate: Callable[..., int], monkeypatch: pytest.MonkeyPatch, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_RETRIES", 1)
    monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{free_port()}/api")
    assert kbgate("ingested", MEDICATION, "--batch", "evening") == 4
    assert "the event was not taken by the Prefect API (ConnectError: " in capsys.readouterr().err


AUTOMATION: dict[str, Any] = {
    "enabled": True,
    "trigger": {"type": "event", "expect": ["kb.ingested"], "match": {"prefect.resource.id": "kbgate.suite.*"}},
    "actions": [{"type": "run-deployment", "deployment_id": "d1"}],
}
DEPLOYMENT = {"name": "after-ingest", "work_pool_name": "kbgate", "status": "READY"}


@contextmanager
def prefect(automations: Any, deployment: Any = None) -> Iterator[tuple[str, list[str]]]:
    """An API that has these automations and this deployment, and takes events; and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            asked.append(self.path)
            found = {"/api/automations/filter": automations, "/api/deployments/d1": deployment}.get(self.path)
            body = b"" if self.path == "/api/events" else json.dumps(found).encode()
            self.send_response(404 if self.path != "/api/events" and found is None else 200 if body else 204)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET = answer

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}/api", asked
        finally:
            http.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("automations", "deployment", "told"),
    [
        ([AUTOMATION], DEPLOYMENT, "deployment after-ingest in work pool kbgate will examine it"),
        ([AUTOMATION], {"name": "after-ingest"}, "deployment after-ingest will examine it"),
        ([{**AUTOMATION, "trigger": {"type": "compound", "triggers": [AUTOMATION["trigger"]]}}], DEPLOYMENT, "will examine it"),
        ([AUTOMATION], {**DEPLOYMENT, "status": "NOT_READY"}, "once a worker or kbgate serve is there to run it, will examine"),
        ([{**AUTOMATION, "actions": [{"type": "call-webhook"}]}], None, "an automation of this API takes it from here"),
        (None, None, "who examines it this API does not say (HTTPStatusError)"),
        ({"detail": "not a list"}, None, "who examines it this API does not say (TypeError)"),
        ([AUTOMATION], None, "who examines it this API does not say (HTTPStatusError)"),
    ],
)  # fmt: skip
def test_who_will_examine_what_came_in_is_told(
    automations: Any, deployment: Any, told: str, kbgate: Callable[..., int], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with prefect(automations, deployment) as (api, asked):
        monkeypatch.setenv("PREFECT_API_URL", api)
        assert kbgate("ingested", MEDICATION) == 0
    assert told in capsys.readouterr().out
    assert asked[-1] == "/api/events"


@pytest.mark.parametrize(
    "automations",
    [
        [],
        [{**AUTOMATION, "enabled": False}],
        [{**AUTOMATION, "trigger": {"type": "event", "expect": ["something.else"]}}],
        [{**AUTOMATION, "trigger": {**AUTOMATION["trigger"], "match": {"prefect.resource.id": "kbgate.suite.faq"}}}],
    ],
)  # fmt: skip
def test_an_event_that_nobody_listens_to_is_an_error(
    automations: Any, kbgate: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with prefect(automations) as (api, asked):
        monkeypatch.setenv("PREFECT_API_URL", api)
        assert kbgate("ingested", MEDICATION) == 4
    assert "starts on kb.ingested, so nobody would examine it; next: kbgate serve" in capsys.readouterr().err
    assert "/api/events" not in asked


def test_a_suite_that_is_not_there_is_told_and_no_event(
    kbgate: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "suite.toml").write_text("name = 5\n")
    with prefect([AUTOMATION], DEPLOYMENT) as (api, asked):
        monkeypatch.setenv("PREFECT_API_URL", api)
        assert kbgate("ingested", "NO/SUCH") == 2
        assert kbgate("ingested", tmp_path) == 2
    assert "NO/SUCH" in capsys.readouterr().err
    assert asked == []


def test_ids_are_sent_one_a_line(kbgate: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "listeners", lambda api, suite: "")
    with server([204]) as (api, sent):
        monkeypatch.setenv("PREFECT_API_URL", api)
        assert kbgate("ingested", MEDICATION, "--ids", "a,b", "--ids", "c") == 0
    assert sent[0][1][0]["payload"]["ids"] == "a,b\nc"


def test_the_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with server([204]) as (proxy, sent):
        monkeypatch.setenv("http_proxy", proxy.removesuffix("/api"))
        monkeypatch.setenv("no_proxy", "elsewhere.invalid")
        emit("http://prefect.invalid/api", "faq", {})
    assert [path for path, _ in sent] == ["http://prefect.invalid/api/events"]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with server([204]) as (api, sent):
        emit(api, "faq", {})
    assert [path for path, _ in sent] == ["/api/events"]
