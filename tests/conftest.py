"""What the tests share: copies of the bundled suite, one vector cache for the session, the command line in process."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

# Before anything is imported that could call home.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["DO_NOT_TRACK"] = "1"
os.environ["ANONYMIZED_TELEMETRY"] = "False"
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
# Before numpy is imported: a test computes little at a time, and threads that wait for each other cost more than they do.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.pop("PREFECT_API_URL", None)
os.environ.pop("KBGATE_KEY", None)

ROOT = Path(__file__).parent.parent
MEDICATION = ROOT / "baselines" / "medication"
SHARED = ROOT.parent / "shared" / "data"
NO_SHARED = "no public collection at ../shared/data"

# No deadline and no health check of speed: on a busy machine a slow example is not a wrong one. Under CI always the same
# examples (Hypothesis' own profile), so that a red run can be repeated.
settings.register_profile(
    "kbgate",
    settings.get_profile("ci" if os.environ.get("CI") == "true" else "default"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kbgate")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lines", action="store_true", help="tell which lines and branches the tests run")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--lines"):
        from tests.lines import Lines

        config.pluginmanager.register(Lines(config.rootpath))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Under CI a skip is a failure: what was not run must not look green. Only the public collections may be absent."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if NO_SHARED not in reason:
            report.outcome, report.longrepr = "failed", f"skipped under CI: {reason}"


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for runs, vectors and history of the session, so that each text is embedded once.

    Where several processes share the tests each has a home of its own, and all have one cache of vectors: the first one
    embeds the bundled suite while the others wait, and then take its word for what the model gave.
    """
    folder = tmp_path_factory.mktemp("kbgate-home")
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = tmp_path_factory.getbasetemp().parent / "vectors"
        shared.mkdir(exist_ok=True)
        (folder / "vectors").symlink_to(shared)
        with FileLock(shared / ".lock"):
            if not list(shared.rglob("*.arrow")):
                import torch

                torch.set_num_threads(os.cpu_count() or 1)  # the others only wait
                _embed_the_bundled_suite(folder)
                torch.set_num_threads(1)
            else:
                _embed_the_bundled_suite(folder)
    return folder


def _embed_the_bundled_suite(home: Path) -> None:
    """Embed what is not in the cache, and have this process remember it all as given by the model.

    A process that finds vectors it did not make has the model give a sample of them again, in each exam.
    """
    import numpy as np

    from kbgate.tasks import exam
    from kbgate.tasks.index import embedding
    from kbgate.tasks.index.vectors import key_of
    from kbgate.tasks.inputs.suite import load_suite

    inputs = exam.load(load_suite(MEDICATION), home)
    material = exam.prepare(inputs, home)
    assert material.model
    exam.embed(inputs, material, inputs.golden.cases, home)
    prefixes = inputs.suite.embedding
    keys = [key_of(prefixes.passage_prefix, text) for text in material.rows.texts]
    keys += [key_of(prefixes.query_prefix, case.query) for case in inputs.golden.cases.values()]
    given = np.concatenate([material.vectors, [material.questions[case] for case in inputs.golden.cases]])
    embedding._remember(material.model, keys, given)


@pytest.fixture(autouse=True)
def _home_is_ours(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBGATE_HOME", str(home))


NAMED = {
    "pressure-feel-fine", "sugar-pill-diarrhea", "f-hiv-why-daily", "n-bike", "cholesterol-worth", "quit-mood-pill",
    "brain-zaps", "syrup-spoon", "seizure-skipped", "lamictal-week", "tb-orange", "powder-breath", "ev-two-clues",
    "c-fit-pill", "f-gold-miss", "pill-two-forgotten", "half-syringe", "f-lang-en-spoon", "antibiotic-leftover.pt",
    "home-cuff-count", "pressure-feel-fine.es",
}  # fmt: skip
"""The bundled suite's cases that tests speak of by name."""


@pytest.fixture(scope="session")
def quarter(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled suite with a quarter of its questions, accepted anew: an exam of it takes a third of the time.

    Every card is there, and so are the questions in other languages and of every form. Copy it before spoiling it.
    """
    from kbgate.flows import evaluate
    from kbgate.tasks.baseline.files import write_baseline

    suite = tmp_path_factory.mktemp("quarter") / "medication"
    shutil.copytree(MEDICATION, suite, ignore=shutil.ignore_patterns("baseline*"))
    cases = read_lines(suite / "golden.jsonl")
    assert {case["id"] for case in cases} > NAMED
    write_lines(suite / "golden.jsonl", [case for n, case in enumerate(cases) if n % 5 == 0 or case["id"] in NAMED])
    write_baseline(evaluate.run(str(suite), home=str(home)), "a quarter of the questions", False)
    return suite


@pytest.fixture
def medication(quarter: Path, tmp_path: Path) -> Path:
    """A copy of the bundled knowledge base with a quarter of its questions and their baseline, to be spoiled."""
    return Path(shutil.copytree(quarter, tmp_path / "medication"))


@pytest.fixture
def kbgate() -> Callable[..., int]:
    """The command line in this process: arguments in, exit code out."""
    from kbgate.flows.__main__ import run

    return lambda *arguments: run([str(a) for a in arguments])


@pytest.fixture(scope="session")
def collection() -> Callable[[str], Path]:
    """A public collection by name; the test is skipped, saying so, where it is absent."""

    def find(name: str) -> Path:
        if not (SHARED / name).is_dir():
            pytest.skip(f"{NO_SHARED}: {name}")
        return SHARED / name

    return find


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_suite(folder: Path, method: str, texts: dict[str, str]) -> Path:
    """A small suite in a folder of its name: a card a text, and the text itself as the question it answers."""
    folder.mkdir(parents=True)
    write_lines(folder / "cards.jsonl", [{"id": name, "title": name, "text": text} for name, text in texts.items()])
    write_lines(folder / "golden.jsonl", [{"id": name, "query": text, "expected": [name]} for name, text in texts.items()])
    settings = f'top_k = 1\nk_values = [1]\n[retrieval]\nmethod = "{method}"\n[kb]\npath = "cards.jsonl"\n'
    (folder / "suite.toml").write_text(f'name = "{folder.name}"\n{settings}')
    return folder


def edit_lines(path: Path, edit: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    """Rewrite a JSONL file row by row; a row that becomes None is removed."""
    write_lines(path, [row for row in map(edit, read_lines(path)) if row is not None])


def edit_text(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{old!r} does not stand in {path.name}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def runs_in(home: Path, suite: str = "medication") -> list[Path]:
    """The folders of the runs of all suites of a name, oldest first."""
    return sorted(home.glob(f"runs/{suite}-????????/*"), key=lambda folder: folder.stat().st_mtime_ns)


def run_named(home: Path, run: str, suite: str = "medication") -> Path:
    """The folder of a run."""
    (folder,) = home.glob(f"runs/{suite}-????????/{run}")
    return folder


def last_verdict(home: Path, suite: str = "medication") -> dict[str, Any]:
    """verdict.json of the newest run."""
    runs = runs_in(home, suite)
    verdict: dict[str, Any] = json.loads((runs[-1] / "verdict.json").read_text(encoding="utf-8"))
    return verdict


def last_report(home: Path, suite: str = "medication") -> str:
    runs = runs_in(home, suite)
    return (runs[-1] / "report.md").read_text(encoding="utf-8")


def cells_of(printed: str) -> list[list[str]]:
    """The lines of a printed table, each as its cells: what stands two spaces apart, wherever its column is."""
    return [re.split(r"\s{2,}", line.strip()) for line in printed.splitlines()]


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    """A folder in which exams are made from rankings alone (see tests/exams.py)."""
    from tests.exams import Desk

    folder = tmp_path / "desk"
    folder.mkdir()
    return Desk(folder)


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API of the session's one Prefect server."""
    from tests.servers import prefect_server

    with prefect_server(tmp_path_factory.mktemp("prefect")) as url:
        yield url
