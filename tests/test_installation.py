"""Installed elsewhere, kbgate is itself: in a repository with folders of the same names, and as nothing but its wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.conftest import ROOT, edit_text, last_verdict, run_named, runs_in, write_lines
from tests.flows.test_circle import start
from tests.servers import COMMANDS, running
from tests.test_architecture import FILES

FAQ = {
    "opening-hours": ("Opening hours", "The pharmacy is open from eight to six, on Saturdays until noon."),
    "delivery": ("Delivery", "Medicines are brought to your door within a day."),
    "returns": ("Returns", "Opened packs cannot be returned; unopened ones can, with the receipt."),
}
LIBRARIES = [path for path in sys.path if path.endswith("site-packages")]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Somebody's repository: flows, tasks and reports of its own, and a suite in a folder called kbgate."""
    folder = tmp_path / "elsewhere"
    suite = folder / "kbgate" / "faq"
    suite.mkdir(parents=True)
    (folder / "flows").mkdir()
    for name in ("flows/__init__.py", "tasks.py", "reports.py"):
        (folder / name).write_text("raise RuntimeError('this is not of kbgate')\n")
    (suite / "suite.toml").write_text('name = "faq"\ntop_k = 1\nk_values = [1]\n\n[retrieval]\nmethod = "bm25"\n')
    write_lines(suite / "cards.jsonl", [{"id": name, "title": a, "text": b} for name, (a, b) in FAQ.items()])
    cases = [{"id": f"ask-{name}", "query": f"{title}?", "must_cite_one_of": [name]} for name, (title, _) in FAQ.items()]
    write_lines(suite / "golden.jsonl", cases)
    return folder


def run(command: Iterable[object], cwd: Path, path: Iterable[object] = (), **more: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder that stands on the path itself, before everything else."""
    environment = {**os.environ, **more, "PYTHONPATH": os.pathsep.join([".", *map(str, path)])}
    return subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("command", [[COMMANDS / "kbgate"], [sys.executable, "-m", "kbgate.flows"]], ids=["script", "module"])
def test_folders_of_the_same_names_are_not_taken_for_ours(command: list[object], elsewhere: Path) -> None:
    done = run([*command, "check", "kbgate/faq"], elsewhere)
    assert done.returncode == 0, done.stderr
    assert "faq: 3 cards, 3 cases; nothing to mend" in done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built from a copy: a build leaves a folder behind."""
    folder = tmp_path_factory.mktemp("wheel")
    parts = [ROOT / name for name in ("flows", "tasks", "reports", "baselines", "deploy")]
    for part in parts:
        shutil.copytree(part, folder / "source" / part.name, ignore=shutil.ignore_patterns("__pycache__", ".kbgate"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    pip("wheel", "--wheel-dir", folder, folder / "source")
    (built,) = folder.glob("kbgate-*.whl")
    return built


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel was installed, alone."""
    folder = tmp_path_factory.mktemp("unpacked")
    pip("install", "--target", folder, wheel)
    return folder


def pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments, "--no-deps"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def installed(arguments: Iterable[object], cwd: Path, unpacked: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Python where the wheel's kbgate is the only one: without `site`, no editable install is hooked in."""
    return run([sys.executable, "-S", *arguments], cwd, [unpacked, *LIBRARIES], **more)


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_every_file_that_is_read(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    code = {f"kbgate/{path.relative_to(ROOT).as_posix()}" for path in FILES}
    read = (
        "reports/templates/**/*.j2",
        "reports/schemas/*.json",
        "baselines/medication/*",
        "deploy/prefect.yaml",
        "deploy/*.txt",
    )
    data = {f"kbgate/{path.relative_to(ROOT).as_posix()}" for pattern in read for path in ROOT.glob(pattern) if path.is_file()}
    assert code <= names
    assert data <= names
    assert len(data) > 15
    assert {f"kbgate/{package}/py.typed" for package in ("flows", "tasks", "reports")} <= names
    assert not [name for name in names if not name.startswith(("kbgate/", "kbgate-"))], "a name that is not ours"


WHERE = """
import importlib.resources, importlib.metadata
import kbgate.flows, kbgate.reports, kbgate.tasks
from kbgate.tasks.gate.verdict import judge
for module in (kbgate.flows, kbgate.reports, kbgate.tasks):
    print(module.__file__)
print(importlib.metadata.distribution("kbgate").locate_file(""))
for package, name in (("reports", "templates/comment.md.j2"), ("reports", "schemas/verdict.v1.schema.json"),
                      ("baselines.medication", "suite.toml"), ("deploy", "prefect.yaml"), ("deploy", "constraints.txt")):
    file = importlib.resources.files(f"kbgate.{package}").joinpath(name)
    assert file.read_text(encoding="utf-8")
    print(file)
"""


@pytest.mark.slow
def test_the_wheels_copy_is_the_one_that_runs_and_finds_its_files(unpacked: Path, elsewhere: Path) -> None:
    done = installed(["-c", WHERE], elsewhere, unpacked)
    assert done.returncode == 0, done.stderr
    places = done.stdout.splitlines()
    assert len(places) == 9
    assert all(Path(place).is_relative_to(unpacked) for place in places), places


@pytest.mark.slow
def test_the_wheel_checks_and_evaluates_its_own_suite(unpacked: Path, elsewhere: Path, home: Path) -> None:
    checked = installed(["-m", "kbgate.flows", "check", "kbgate/faq"], elsewhere, unpacked)
    assert (checked.returncode, checked.stderr) == (0, "")
    shutil.copytree(unpacked / "kbgate" / "baselines" / "medication", elsewhere / "kbgate" / "medication")
    command = ["-m", "kbgate.flows", "evaluate", "kbgate/medication"]
    done = installed(command, elsewhere, unpacked, KBGATE_HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("WARN medication, full set")  # one asker of it may see no gold, and that is told
    assert (run_named(home, last_verdict(home)["run"]) / "report.md").exists()


@pytest.mark.slow
def test_a_worker_there_runs_the_nightly_deployment(elsewhere: Path, api: str, home: Path, tmp_path: Path) -> None:
    settings = {"PREFECT_API_URL": api, "PREFECT_HOME": str(tmp_path / "prefect"), "KBGATE_ROOT": str(elsewhere)}
    settings |= {"KBGATE_HOME": ".kbgate", "PREFECT_WORKER_QUERY_SECONDS": "2"}
    file = Path(shutil.copy(ROOT / "deploy" / "prefect.yaml", tmp_path / "prefect.yaml"))
    edit_text(file, "pool: &pool\n    name: kbgate\n", "pool: &pool\n    name: elsewhere\n")  # the server has other tests
    first = run(
        [COMMANDS / "kbgate", "baseline", "update", "kbgate/faq", "--reason", "first"], elsewhere, KBGATE_HOME=".kbgate"
    )
    assert first.returncode == 0, first.stderr
    for words in (
        ["work-pool", "create", "elsewhere", "--type", "process"],
        ["--no-prompt", "deploy", "--prefect-file", file, "--name", "nightly"],
    ):
        done = run([COMMANDS / "prefect", *words], elsewhere, **settings)
        assert done.returncode == 0, done.stdout + done.stderr
    worker = [COMMANDS / "prefect", "worker", "start", "--pool", "elsewhere", "--name", "elsewhere"]
    with running(worker, tmp_path / "worker.log", {**settings, "PYTHONPATH": "."}, cwd=elsewhere):
        night = start(api, "nightly", "nightly", {"folder": "kbgate", "home": ".kbgate"})
    said = (tmp_path / "worker.log").read_text()
    assert (night["state"]["type"], night["state"]["name"]) == ("COMPLETED", "Pass"), said[-3000:]
    assert runs_in(elsewhere / ".kbgate", "faq")
