"""A copy of the code under its real name with the tests beside it, and forked processes in which tests are run there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PARTS = ("flows", "tasks", "reports")
_LEFT = shutil.ignore_patterns("__pycache__", ".kbgate", "mutants")
_PRELOADED = ("numpy", "pandas", "pyarrow.parquet", "pydantic", "scipy.special", "scipy.stats", "hypothesis.strategies",
              "chromadb", "prefect", "typer", "rich", "jsonschema", "pytrec_eval", "pytest")  # fmt: skip
"""What tests import from elsewhere, once for all processes; none of it may know of kbgate."""
QUIET = ("-q", "--no-header", "-p", "no:randomly", "-p", "no:cacheprovider", "--tb=line",
         "-W", "ignore::pytest.PytestAssertRewriteWarning")  # fmt: skip


def stage(folder: Path) -> Path:
    """Copy the checkout's code and tests to where mutants are tried."""
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / "src" / "kbgate" / part, ignore=_LEFT)
        (folder / part).symlink_to(folder / "src" / "kbgate" / part)  # where tests look for files that are no modules
    for part in ("tests", "baselines"):
        shutil.copytree(ROOT / part, folder / part, ignore=_LEFT)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def preload() -> None:
    """Import what every process needs before the first one is forked."""
    for name in _PRELOADED:
        __import__(name)


@dataclass(frozen=True)
class Job:
    """Something to do in a process of its own, and how long it may take."""

    name: Any
    do: Callable[[], Any]
    seconds: float


@dataclass
class _Child:
    job: Job
    out: Path
    ends: float


TIMED_OUT, DIED, TROUBLE = "timed out", "died", "trouble"
"""TROUBLE: what went wrong is ours, and must not pass for a mutant that was noticed."""


def run(jobs: Iterator[Job], folder: Path, processes: int) -> Iterator[tuple[Any, Any]]:
    """Each job's name and what it returned, `TIMED_OUT` or `DIED`, as they end."""
    children: dict[int, _Child] = {}
    number, more = 0, True
    while more or children:
        while more and len(children) < processes:
            job = next(jobs, None)
            more = job is not None
            if job is not None:
                number += 1
                out = folder / f"out-{number}.json"
                children[_fork(job, folder, out)] = _Child(job, out, time.monotonic() + job.seconds)
        time.sleep(0.02)
        for pid, child in list(children.items()):
            over = time.monotonic() > child.ends
            if over:
                os.killpg(pid, signal.SIGKILL)
            done, _ = os.waitpid(pid, 0 if over else os.WNOHANG)
            if done:
                del children[pid]
                told = TIMED_OUT if over else json.loads(child.out.read_text()) if child.out.exists() else DIED
                if isinstance(told, dict) and TROUBLE in told:
                    raise RuntimeError(told[TROUBLE])
                yield child.job.name, told
                child.out.unlink(missing_ok=True)


def _fork(job: Job, folder: Path, out: Path) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        log = os.open(folder / f"{out.stem}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.chdir(folder)
        at_home(folder)
        try:
            told = job.do()
        except Exception:
            told = {TROUBLE: traceback.format_exc()}
        out.with_suffix(".part").write_text(json.dumps(told))
        out.with_suffix(".part").rename(out)
    finally:
        os._exit(0)


def at_home(folder: Path) -> None:
    """Make the copy the only kbgate there is: the editable install points at the checkout."""
    sys.path[:] = [
        str(folder / "src"),
        str(folder),
        *(p for p in sys.path if p not in ("", str(ROOT)) and "__editable__" not in p),
    ]
    sys.meta_path[:] = [finder for finder in sys.meta_path if "__editable__" not in getattr(finder, "__module__", "")]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("kbgate", "tests")]:
        del sys.modules[name]
    sys.path_importer_cache.clear()


class Swapped(MetaPathFinder):
    """Gives one module another source."""

    def __init__(self, folder: Path, file: str, source: str):
        path = folder / "src" / "kbgate" / file
        parts = ("kbgate", *Path(file).with_suffix("").parts)
        self._package = parts[-1] == "__init__"
        self._name = ".".join(parts[:-1] if self._package else parts)
        self._loader = _Loader(self._name, str(path), source)
        self._where = [str(path.parent)] if self._package else None

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return spec_from_file_location(fullname, self._loader.path, loader=self._loader, submodule_search_locations=self._where)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, source: str):
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


def pytest_main(arguments: Iterable[str], plugin: object, temporary: str) -> int:
    """Run pytest in this process, quietly, always drawing the same examples."""
    import hypothesis
    import pytest

    hypothesis.settings.register_profile("mutants", max_examples=30, derandomize=True, database=None, deadline=None)
    hypothesis.settings.load_profile("mutants")
    return int(pytest.main([*QUIET, f"--basetemp={temporary}", *arguments], plugins=[plugin]))
