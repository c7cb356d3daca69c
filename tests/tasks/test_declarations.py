"""What modules declare outside of functions, held against the same said once more: nothing of it changes unnoticed.

A record that can be written to, a check that moved to another place, a level of significance that is another: no case that
is worked by hand need notice. After a change that is meant: python -m tests.tasks.test_declarations
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

import kbgate.tasks

GOLDEN = Path(__file__).parent / "declarations.golden.txt"


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(kbgate.tasks.__path__, "kbgate.tasks.")
    return [importlib.import_module(module.name) for module in sorted(found, key=lambda module: module.name)]


def is_plain(value: Any) -> bool:
    """Whether a value is told by what is printed of it."""
    if isinstance(value, tuple | list):
        return all(is_plain(part) for part in value)
    if isinstance(value, dict):
        return all(is_plain(part) for item in value.items() for part in item)
    return isinstance(value, str | int | float) or value is None


def shown(value: Any) -> str:
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(shown, value))) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(key)}: {shown(part)}" for key, part in value.items()) + "}"
    return str(value) if isinstance(value, str) else repr(value)


def constants(module: ModuleType) -> set[str]:
    """The names in capitals to which a module itself gives a value."""
    body = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body
    assigned = [target for line in body if isinstance(line, ast.Assign) for target in line.targets]
    assigned += [line.target for line in body if isinstance(line, ast.AnnAssign)]
    names = {node.id for target in assigned for node in ast.walk(target) if isinstance(node, ast.Name)}
    return {name for name in names if name.lstrip("_").isupper()}


def declared(module: ModuleType) -> Iterator[str]:
    """One line for each record, model, constant and default of a module."""
    own = constants(module)
    for name, value in vars(module).items():
        home = getattr(value, "__module__", None)
        if isinstance(value, type) and home == module.__name__:
            yield from of_class(name, value)
            for method, function in vars(value).items():
                if inspect.isfunction(function) and not method.startswith("__"):
                    yield from defaults(f"{name}.{method}", function)
        elif inspect.isfunction(value) and home == module.__name__:
            yield from defaults(name, value)
        elif name in own and (is_plain(value) or isinstance(value, set | frozenset)):
            yield f"{name} = {shown(value)}"


def of_class(name: str, owner: type) -> Iterator[str]:
    if issubclass(owner, BaseModel):
        for field, told in owner.model_fields.items():
            if not told.is_required():
                yield f"{name}.{field} = {told.get_default(call_default_factory=True)!r}"
            if told.metadata:
                yield f"{name}.{field} {re.sub(' at 0x[0-9a-f]+', '', repr(told.metadata))}"
    elif dataclasses.is_dataclass(owner):
        params = owner.__dataclass_params__  # type: ignore[attr-defined]
        slots = "__slots__" in vars(owner)
        yield f"{name}: frozen={params.frozen} slots={slots} eq={params.eq} order={params.order}"
        for part in dataclasses.fields(owner):
            if part.default is not dataclasses.MISSING and is_plain(part.default):
                yield f"{name}.{part.name} = {shown(part.default)}"


def defaults(name: str, function: Any) -> Iterator[str]:
    """A function's defaults, where they say something: a number, a truth value, a name."""
    given = {part.name: part.default for part in inspect.signature(function).parameters.values()}
    said = [
        f"{part}={shown(value)}" for part, value in given.items() if value is not inspect.Parameter.empty and is_plain(value)
    ]
    if said:
        yield f"{name}({', '.join(said)})"


def parts() -> Iterator[str]:
    """One line for each part of each kind, in their order: what it declares of itself."""
    from kbgate.tasks.diagnosis.causes import CAUSES
    from kbgate.tasks.gate import CHECKS
    from kbgate.tasks.index.chunking import CHUNKERS
    from kbgate.tasks.metrics import AGGREGATES, METRICS
    from kbgate.tasks.retrieval import RETRIEVERS
    from kbgate.tasks.studies.faults import FAULTS

    registries: Iterable[tuple[str, Any]] = (
        ("metric", METRICS), ("aggregate", AGGREGATES), ("check", CHECKS), ("retriever", RETRIEVERS), ("chunker", CHUNKERS),
        ("cause", CAUSES), ("fault", FAULTS),
    )  # fmt: skip
    for kind, registry in registries:
        for name, part in registry.items():
            told = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
            said = [f"{field}={shown(value)}" for field, value in told.items() if is_plain(value)]
            yield f"{kind} {name}: {', '.join(said)}"


def document() -> str:
    lines = [f"{module.__name__.removeprefix('kbgate.')}: {line}" for module in modules() for line in declared(module)]
    return "\n".join([*lines, *parts()]) + "\n"


def test_what_is_declared_is_what_was_agreed() -> None:
    agreed, now = set(GOLDEN.read_text(encoding="utf-8").splitlines()), set(document().splitlines())
    assert (sorted(now - agreed), sorted(agreed - now)) == ([], []), "if it is meant: python -m tests.tasks.test_declarations"


if __name__ == "__main__":
    GOLDEN.write_text(document(), encoding="utf-8")
