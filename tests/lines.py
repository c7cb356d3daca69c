"""Which lines and branches of the product the tests run, as a pytest plugin: `--lines`.

Each line has a probe that goes once it was hit. A tracer, which is called at every line again, took as long as the tests.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from slipcover import FileMatcher, ImportManager, Slipcover, merge_coverage, print_coverage

# Folders: modules that no test imported count as well.
SOURCES = ["flows", "tasks", "reports"]
WORKER = "PYTEST_XDIST_WORKER"


class Lines:
    """Puts probes into what is imported from now on, and tells which were hit: of all processes that share the tests."""

    def __init__(self, root: Path):
        self._table, self._folder = root / ".pytest_cache" / "lines.txt", root / ".pytest_cache" / "lines"
        self._folder.mkdir(parents=True, exist_ok=True)
        folders = [str(root / source) for source in SOURCES]
        self._probes = Slipcover(branch=True, source=folders, immediate=True)
        if WORKER not in os.environ:
            for old in self._folder.iterdir():
                old.unlink()
        ImportManager(self._probes, FileMatcher(sources=folders)).__enter__()

    def pytest_sessionfinish(self) -> None:
        seen = self._probes.get_coverage()
        (self._folder / os.environ.get(WORKER, "main")).write_text(json.dumps(seen), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        seen, *others = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(self._folder.iterdir()))
        for other in others:
            merge_coverage(seen, other)
        with self._table.open("w", encoding="utf-8") as table:
            print_coverage(seen, outfile=table, skip_covered=True)
        share = f"{seen['summary']['percent_covered']:.1f} %"
        terminalreporter.write_line(f"lines and branches the tests ran: {share}; by file: .pytest_cache/lines.txt")
