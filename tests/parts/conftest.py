"""What a test brings is taken out again, and every test has a suite of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.diagnosis.causes import CAUSES
from kbgate.tasks.gate import CHECKS
from kbgate.tasks.index.chunking import CHUNKERS
from kbgate.tasks.inputs.readers import READERS
from kbgate.tasks.metrics import AGGREGATES, METRICS
from kbgate.tasks.registry import Registry
from kbgate.tasks.retrieval import RETRIEVERS
from kbgate.tasks.studies.faults import FAULTS
from tests.parts.school import School

REGISTRIES: tuple[Registry[Any], ...] = (
    METRICS, AGGREGATES, RETRIEVERS, CHUNKERS, CHECKS, CAUSES, FAULTS, READERS,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _brought_parts_go() -> Iterator[None]:
    before = [set(registry) for registry in REGISTRIES]
    yield
    for registry, names in zip(REGISTRIES, before, strict=True):
        for name in set(registry) - names:
            registry.remove(name)
        assert set(registry) == names


@pytest.fixture
def school(tmp_path: Path, kbgate: Callable[..., int], home: Path) -> School:
    """A suite named after the test, so that no two share runs, history or cards kept."""
    name = tmp_path.name.removeprefix("test_").replace("_", "-").lower()
    (tmp_path / "repo").mkdir()
    return School(tmp_path / "repo", name, kbgate, home)
