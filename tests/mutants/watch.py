"""What a test run inside a forked process is watched for, as pytest plugins."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from multiprocessing.process import BaseProcess
from typing import Any

import coverage
import pytest

_HEAVY = {"sentence_transformers", "torch"}


class Costly(pytest.fail.Exception):
    """A test wants what no fast test has: a process, a server or the model.

    One of pytest's own outcomes: no `except Exception` catches it, and pytest takes down what it had set up.
    """


class Ledger:
    """Learns of every test whether it passes, how long it takes, whether it is fast in kind, and which lines it runs."""

    def __init__(self, folder: str):
        self._coverage = coverage.Coverage(data_file=None, source=[folder], branch=False, config_file=False)
        self._now = ""
        self.failed: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.costly: set[str] = set()

    def __enter__(self) -> Ledger:
        sys.meta_path.insert(0, self)
        for owner, name in ((subprocess.Popen, "__init__"), (BaseProcess, "start"), (socket.socket, "bind")):
            setattr(owner, name, self._refuse)
        self._coverage.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._coverage.stop()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if self._now and name in _HEAVY:
            self._refuse()
        return None

    def _refuse(self, *_: Any, **__: Any) -> None:
        self.costly.add(self._now)
        raise Costly(self._now)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._now = item.nodeid
        self._coverage.switch_context(item.nodeid)
        yield
        self._coverage.switch_context("")
        self._now = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed[report.nodeid] = str(report.longrepr)

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        # What several tests share fails for all of them when the first one asked for it.
        if call.excinfo is not None and isinstance(call.excinfo.value, Costly):
            self.costly.add(item.nodeid)

    def lines(self) -> dict[str, dict[int, list[str]]]:
        """By file and line, the tests that ran it; "" among them where it was run outside of any test, by an import."""
        data = self._coverage.get_data()
        return {
            file: {line: list(tests) for line, tests in data.contexts_by_lineno(file).items()} for file in data.measured_files()
        }


class Notice:
    """Who noticed."""

    def __init__(self) -> None:
        self.first = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.first:
            self.first = report.nodeid

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """In the order asked for, whatever file they stand in."""
        items.sort(key=lambda item: self.order.get(item.nodeid, 0))

    order: dict[str, int] = {}  # noqa: RUF012

    def asked(self, tests: Sequence[str]) -> list[str]:
        self.order = {test: place for place, test in enumerate(tests)}
        return list(tests)
