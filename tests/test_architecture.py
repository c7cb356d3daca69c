"""The house keeps its shape: who may import whom, how large a room may be, what is installed."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGES = ("flows", "tasks", "reports")
GROUND = {"domain", "tables", "settings", "errors", "registry", "records", "predicates", "results", "findings"}
"""What every stage module may import."""
FOR_FLOWS = {"", "stages", "studies", "domain", "tables", "results", "findings", "settings", "errors"}
FOR_REPORTS = {"", "domain", "tables", "results", "findings"}
STAGE_TO_STAGE = {
    "embedding": {"vectors"},
    "indexing": {"vectors"},
    "gate": {"statistics"},
    "comparison": {"figures"},
    "figures": {"statistics"},
    "baseline": {"anchor"},
    "verification": {"comparison", "fingerprint", "gate", "runfiles", "scoring"},
    "runfiles": {"fingerprint"},
    # What holds two states of a suite side by side uses the stages that made them.
    "review": {"baseline", "cards", "comparison", "gate", "scoring", "suite"},
    "arrivals": {"fingerprint", "history", "retrieval", "vectors"},
    # The pointer and its rules: builds are collections, and a verdict is bound to a policy.
    "production": {"indexing"},
    "promotion": {"fingerprint", "indexing", "production", "runfiles"},
}
"""The few arrows between stages, besides retrieval -> indexing -> embedding. vectors is the cache both share."""
LARGEST = 300

FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def modules_imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return {name for name in found if name.split(".")[0] in PACKAGES}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def allowed(importer: str, imported: str) -> bool:
    room, inner = imported.split(".")[0], [*imported.split("."), ""][1]
    if importer.startswith("flows"):
        return (
            room == "flows"
            or room == "reports"
            or inner in {"stages", "studies", "domain", "tables", "results", "settings", "errors", ""}
        )
    if importer.startswith("reports"):
        return room == "reports" or inner in FOR_REPORTS
    if room != "tasks":
        return False
    stage = importer.split(".")[1]
    if stage in {"stages", "studies"} or inner == "":
        return True
    if inner in GROUND or inner == stage:
        return True
    if stage == "retrieval":
        return inner in {"indexing", "vectors"}
    return inner in STAGE_TO_STAGE.get(stage, set())


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    importer = name_of(path)
    wrong = sorted(name for name in modules_imported(path) if not allowed(importer, name))
    assert not wrong, f"{importer} may not import {wrong}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_room_is_too_large(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LARGEST, f"{path.name} has {lines} lines"


def test_the_ground_floor_imports_no_stage() -> None:
    for path in (ROOT / "tasks").glob("*.py"):
        if path.stem in GROUND:
            above = {name.split(".")[1] for name in modules_imported(path) if "." in name} - GROUND
            assert not above, f"{path.stem} imports {above}"


def test_the_packages_stated_are_the_packages_there_are() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = {".".join(path.parent.relative_to(ROOT).parts) for p in PACKAGES for path in (ROOT / p).rglob("__init__.py")}
    assert set(stated) == there


def test_the_imported_tasks_are_ours() -> None:
    import tasks

    assert Path(str(tasks.__file__)).parent == ROOT / "tasks"


def test_the_top_level_is_the_owners() -> None:
    owned = {"pyproject.toml", "README.md", "flows", "tasks", "baselines", "reports", "tests", "deploy", "Makefile", "LICENSE"}
    there = {path.name for path in ROOT.iterdir() if not path.name.startswith(".") and not path.name.endswith(".egg-info")}
    assert there == owned


def test_the_lock_pins_everything_that_is_installed() -> None:
    lines = (ROOT / "deploy" / "constraints.txt").read_text().split()
    pinned = {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in lines if "==" in line}
    installed = {re.sub(r"[-_.]+", "-", d.metadata["Name"]).lower() for d in importlib.metadata.distributions()}
    assert installed - pinned - {"kbgate", "pip", "setuptools", "wheel"} == set()
