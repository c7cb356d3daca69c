"""Named parts, filled by decorators: a new part is one decorated function in the folder of its kind, nothing else.

A registry is the container alone; what a part is, and the decorator that declares one, stand with its kind. It imports the
modules of its kind when it is first asked, so a file that is dropped into the folder is loaded, and nothing is imported that
no one asks for.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from kbgate.tasks.errors import Problem, UnknownPart, did_you_mean

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """The parts of one kind, by name; an unknown name raises `UnknownPart` with the nearest one."""

    def __init__(self, kind: str, home: str):
        self.kind, self._home = kind, home
        self._parts: dict[str, T] = {}
        self._loaded = False

    def add(self, name: str, part: T) -> None:
        """Register a part; two parts of one name are a programming error."""
        if name in self._parts:
            raise ValueError(f"two {self.kind}s are called '{name}'")
        self._parts[name] = part

    def remove(self, name: str) -> None:
        """Take a part out again: what a test brought must not stay."""
        del self._load()[name]

    def _load(self) -> dict[str, T]:
        if not self._loaded:
            self._loaded = True
            module = importlib.import_module(self._home)
            for inner in pkgutil.iter_modules(getattr(module, "__path__", [])):
                importlib.import_module(f"{self._home}.{inner.name}")
        return self._parts

    def __getitem__(self, name: str) -> T:
        parts = self._load()
        if name not in parts:
            raise UnknownPart([Problem(self.kind, 0, f"unknown {self.kind} '{name}'; {did_you_mean(name, parts)}")])
        return parts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._load()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._load()))

    def __len__(self) -> int:
        return len(self._load())


def first_line(function: Callable[..., object]) -> str:
    """The sentence a report prints about a part."""
    return (inspect.getdoc(function) or "").split("\n", 1)[0]
