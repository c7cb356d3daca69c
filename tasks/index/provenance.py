"""Where a figure comes from: versions, weights, commit, and what was counted."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import JsonValue

from kbgate.tasks.domain import Model
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.git import run_git
from kbgate.tasks.schema import Commit, ModelIdentity, Provenance

_SHAPES_FIGURES = (
    "kbgate", "chromadb", "sentence-transformers", "transformers", "tokenizers", "torch", "bm25s", "PyStemmer", "icu4py",
    "numpy", "pandas",
)  # fmt: skip


def provenance_of(
    suite_folder: Path, model: Model | None, settings: str, pipeline: dict[str, dict[str, JsonValue]]
) -> Provenance:
    """Model and weights, library versions, the commit of the suite's repository and whether it was dirty, settings."""
    versions = {name: _version(name) for name in _SHAPES_FIGURES} | {"python": platform.python_version()}
    identity = ModelIdentity(name=model.name if model else "", weights=model.weights if model else "")
    return Provenance(model=identity, versions=versions, commit=_commit(suite_folder), settings=settings, pipeline=pipeline)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit(folder: Path) -> Commit | None:
    """The commit a folder stands at, None outside a repository and where git cannot be asked."""

    def git(*arguments: str) -> str | None:
        try:
            done = run_git(folder, *arguments)
        except Unmeasured:
            return None
        return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None

    head = git("rev-parse", "HEAD")
    if head is None:
        return None
    return Commit(hash=head, dirty=bool(git("status", "--porcelain", "--", ".")))
