"""What a distribution needs, read from what is installed: by its own word, and by the word of what it needs."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

Requires = Callable[[str], Iterable[str] | None]


def needed(root: str, without: Collection[str] = (), requires: Requires = importlib.metadata.requires) -> set[str]:
    """The names of everything `root` (such as `kbgate[test]`) needs here; `without`: names that are not followed."""
    waiting, seen = [Requirement(root)], set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        key = (name, frozenset(wanted.extras))
        if name in without or key in seen:
            continue
        seen.add(key)
        try:
            lines = requires(name) or ()
        except importlib.metadata.PackageNotFoundError:
            continue  # needed, and not there: whoever asks has its name
        waiting += [found for found in map(Requirement, lines) if _applies(found, wanted.extras)]
    return {name for name, _ in seen} - {canonicalize_name(Requirement(root).name)}


def _applies(found: Requirement, extras: Collection[str]) -> bool:
    return found.marker is None or any(found.marker.evaluate({"extra": extra}) for extra in ("", *extras))


def pins(file: Path) -> dict[str, str]:
    """The lines of a lock file, by name."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if "==" in line]
    return {canonicalize_name(line.split("==")[0]): line for line in lines}
