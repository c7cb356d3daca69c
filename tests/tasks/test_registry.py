from __future__ import annotations

import pytest

from kbgate.tasks.errors import UnknownPart
from kbgate.tasks.registry import CHECKS, CHUNKERS, METRICS, RETRIEVERS, Registry, metric_of


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
        read, cut = metric_of(part.key(7))
        assert read is part
        assert cut == (7 if part.at_k else None)


def test_every_part_says_what_it_does() -> None:
    for part in (*METRICS.values(), *CHECKS.values()):
        assert part.summary.endswith((".", "value")), part.name
    for part in METRICS.values():
        assert part.source, part.name
    assert {"exact", "dense", "bm25", "hybrid"} <= set(RETRIEVERS)
    assert {"recursive", "whole"} <= set(CHUNKERS)
