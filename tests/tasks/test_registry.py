from __future__ import annotations

import pytest

from kbgate.tasks.diagnosis.causes import CAUSES
from kbgate.tasks.errors import UnknownPart
from kbgate.tasks.gate import CHECKS
from kbgate.tasks.index.chunking import CHUNKERS
from kbgate.tasks.inputs.readers import READERS
from kbgate.tasks.metrics import AGGREGATES, METRICS, figure_at, part_of
from kbgate.tasks.registry import Registry
from kbgate.tasks.retrieval import RETRIEVERS
from kbgate.tasks.studies.faults import FAULTS
from kbgate.tasks.tables import Figure

EVERY: tuple[Registry[object], ...] = (METRICS, AGGREGATES, CHECKS, CHUNKERS, READERS, RETRIEVERS, CAUSES, FAULTS)  # type: ignore[assignment]


def test_an_unknown_name_raises_with_the_nearest_one() -> None:
    with pytest.raises(UnknownPart, match=r"unknown metric 'ndgc'; did you mean 'ndcg'\?"):
        METRICS["ndgc"]


def test_two_parts_of_one_name_are_a_programming_error() -> None:
    registry: Registry[int] = Registry("part", "kbgate.tasks.errors")
    registry.add("a", 1)
    with pytest.raises(ValueError, match="two parts are called 'a'"):
        registry.add("a", 2)


def test_a_figure_reads_back() -> None:
    for part in METRICS.values():
        figure = Figure.parse(str(figure_at(part, 7)))
        assert part_of(figure) is part
        assert figure.k == (7 if part.at_k else None)


@pytest.mark.parametrize("registry", EVERY, ids=lambda registry: registry.kind)
def test_every_part_says_what_it_does_in_one_sentence(registry: Registry[object]) -> None:
    assert len(registry) > 0
    for name, part in registry.items():
        assert part.summary.rstrip(".").count(" ") > 2, name


def test_the_sentence_of_a_metric_and_of_a_check_is_whole() -> None:
    for part in (*METRICS.values(), *CHECKS.values()):
        assert part.summary.endswith((".", "value")), part.name


def test_every_metric_names_its_source() -> None:
    assert all(part.source for part in (*METRICS.values(), *AGGREGATES.values()))


def test_the_methods_that_suites_name_are_there() -> None:
    assert {"exact", "dense", "bm25", "hybrid"} <= set(RETRIEVERS)
    assert {"recursive", "whole"} <= set(CHUNKERS)
