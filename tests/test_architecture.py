"""The house keeps its shape: who may import whom, how large a room may be, what is installed."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
from hypothesis import settings

from tests.conftest import ROOT

PACKAGES = ("flows", "tasks", "reports")
ROOMS = (
    "characters", "printable", "errors", "secret", "git", "settings", "unfinished", "records", "tables", "schema", "findings",
    "clock", "domain", "identity", "results", "conclusions", "outcomes",
    "registry", "predicates", "manifest", "rules", "metrics", "words", "index", "retrieval", "comparison", "gate", "inputs",
    "runs", "baseline", "production", "diagnosis", "stages", "exam", "studies", "reports", "flows",
)  # fmt: skip
"""From the ground up: a room imports rooms below it."""
LARGEST = 300
"""Lines of a module."""
LONGEST = 40
"""Lines of a function."""
DOORS = 40
"""Places that may say Any: JSON, TOML, objects of other people's libraries."""

FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def modules_imported(path: Path) -> set[str]:
    """Every module that a file imports, in full."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def room_of(module: str) -> str:
    """The room a module of ours stands in: `kbgate.tasks.gate.limits` in gate, `kbgate.flows.cli` in flows."""
    _, package, *inner = module.split(".")
    return inner[0] if package == "tasks" and inner else package


def name_of(path: Path) -> str:
    return ".".join(("kbgate", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_room_imports_rooms_below_it(path: Path) -> None:
    own = room_of(name_of(path))
    ours = {room_of(module) for module in modules_imported(path) if module.startswith("kbgate.")} - {own, "tasks"}
    above = sorted(room for room in ours if ROOMS.index(room) > (len(ROOMS) if own == "tasks" else ROOMS.index(own)))
    assert not above, f"{name_of(path)} imports {above}, which stand above it"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_whoever_starts_a_process_keeps_the_key_from_it(path: Path) -> None:
    imported = modules_imported(path)
    starts = {"subprocess", "concurrent.futures.ProcessPoolExecutor", "multiprocessing.get_context"} & imported
    keeps = {f"kbgate.tasks.secret.{name}" for name in ("environment", "withheld")} & imported
    assert keeps or not starts, f"{name_of(path)} starts processes, and they would inherit KBGATE_KEY"


def test_every_room_has_its_place() -> None:
    there = {room_of(name_of(path)) for path in FILES} - {"tasks"}
    assert there == set(ROOMS)


@pytest.mark.parametrize("path", [*FILES, *sorted((ROOT / "tests").rglob("*.py"))], ids=str)
def test_no_bare_name_is_imported(path: Path) -> None:
    bare = sorted(name for name in modules_imported(path) if name.split(".")[0] in PACKAGES)
    assert not bare, f"{path.name} imports {bare}: a second copy of every class; write kbgate.{bare[0]}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_room_is_too_large(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LARGEST, f"{path.name} has {lines} lines"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_function_is_too_long(path: Path) -> None:
    functions = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef))
    lengths = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST}


def test_any_stands_at_doors_alone() -> None:
    names = [
        f"{name_of(path)}:{node.lineno}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id == "Any"
    ]
    assert len(names) <= DOORS, names


def test_the_packages_stated_are_the_packages_there_are() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    code = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")}
    suites = {path.parent for path in (ROOT / "baselines").rglob("suite.toml")}
    there = {".".join(("kbgate", *folder.relative_to(ROOT).parts)) for folder in {*code, *suites, ROOT / "deploy"}}
    assert set(stated) == there


def test_every_folder_of_code_is_a_package() -> None:
    """A folder without __init__.py is importable from the checkout and missing from the wheel."""
    assert {path.parent for path in FILES} == {path.parent for path in FILES if path.name == "__init__.py"}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_types_are_told_to_whoever_imports_them(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()


def test_the_imported_tasks_are_ours() -> None:
    import kbgate.tasks

    assert Path(str(kbgate.tasks.__file__)).parent == ROOT / "tasks"


def test_the_top_level_is_the_owners() -> None:
    owned = {"pyproject.toml", "README.md", "flows", "tasks", "baselines", "reports", "tests", "deploy", "Makefile", "LICENSE"}
    there = {path.name for path in ROOT.iterdir() if not path.name.startswith(".") and not path.name.endswith(".egg-info")}
    assert there - {"build"} == owned  # pip leaves a folder build where it made a wheel


def test_no_property_test_has_a_deadline() -> None:
    assert settings().deadline is None
    own = [path.name for path in (ROOT / "tests").rglob("test_*.py") if "deadline" + "=" in path.read_text(encoding="utf-8")]
    assert not own, "the one profile in tests/conftest.py says it"


DOOR = ROOT / "flows" / "door.py"
CALENDAR = {"now", "utcnow", "today", "time", "time_ns", "gmtime", "localtime", "ctime", "asctime"}
"""Calls that read what day or time it is; `monotonic` and `perf_counter` measure how long something took, and may stay."""


def clocks_read(source: str) -> list[str]:
    """The places that read the calendar, other than by asking the door."""
    places = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            places += [f"{node.lineno}: {alias.name}" for alias in node.names if alias.name in CALENDAR]
        elif isinstance(node, ast.Call):
            named = ast.unparse(node.func)
            text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            if named in ("door.now", "dt.time"):  # `dt.time` makes a time of day
                continue
            if named.rpartition(".")[2] in CALENDAR or (text in ("now", "today") and "time" in named.lower()):
                places.append(f"{node.lineno}: {named}")
    return places


@pytest.mark.parametrize("path", [path for path in FILES if path != DOOR], ids=name_of)
def test_the_clock_is_read_at_the_door_and_nowhere_below_it(path: Path) -> None:
    read = clocks_read(path.read_text(encoding="utf-8"))
    assert not read, f"{name_of(path)} reads the clock at {read}; take a Clock, which a command or a flow's body hands down"


def test_the_door_reads_the_clock_once() -> None:
    assert len(clocks_read(DOOR.read_text(encoding="utf-8"))) == 1


@pytest.mark.parametrize(
    "reading",
    [
        "dt.datetime.now(dt.UTC)", "datetime.now()", "date.today()", "dt.date.today()", "time.time()", "time.time_ns()",
        "datetime.datetime.utcnow()", "time.gmtime()", "time.localtime()", "pd.Timestamp.now()", "pd.Timestamp('now')",
        "np.datetime64('today')", "from time import time", "time.ctime()",
    ],
)  # fmt: skip
def test_a_reading_of_the_clock_is_found_in_whatever_form(reading: str) -> None:
    assert len(clocks_read(f"import x\n{reading}\n")) == 1


@pytest.mark.parametrize(
    "measured",
    ["time.monotonic()", "time.perf_counter()", "door.now()", "clock.now", "exam.today", "dt.time(2, 30)"],
)
def test_measuring_how_long_something_took_is_no_reading_of_the_clock(measured: str) -> None:
    assert clocks_read(measured) == []
