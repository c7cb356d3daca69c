"""The four-case, six-document example: tenant acme, and an en-US filter that hides the en-GB and fr-FR golds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kbgate.tasks.comparison.scoring import Judge
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.golden import load_golden
from kbgate.tasks.predicates import in_store_values, matches, store_fields
from kbgate.tasks.registry import METRICS
from kbgate.tasks.settings import Kb, Suite
from kbgate.tasks.tables import rows_of
from tests.conftest import write_lines
from tests.exams import Desk

DOCUMENTS = [("d1", "en-US", "acme"), ("d2", "en-GB", "acme"), ("d3", "fr-FR", "acme"), ("d4", "en-US", "acme"),
             ("d5", "en-US", "other"), ("d6", "en-US", "acme")]  # fmt: skip
GOLD = {"q1": "d1", "q2": "d2", "q3": "d3", "q4": "d4"}


@pytest.fixture
def example(tmp_path: Path) -> tuple[Judge, dict[str, tuple[str, ...]], pd.DataFrame, dict[str, Any]]:
    cards = [{"id": i, "text": "x", "language": lang, "metadata": {"tenant": tenant}} for i, lang, tenant in DOCUMENTS]
    access = {"filter": {"language": "en-US"}, "entitled": {"tenant": "acme"}}
    cases = [{"id": q, "query": "?", "expected": [gold], **access} for q, gold in GOLD.items()]
    write_lines(tmp_path / "cards.jsonl", cards)
    write_lines(tmp_path / "golden.jsonl", cases)
    suite = Suite(folder=tmp_path, name="x", kb=Kb(filterable=("tenant",)))
    kb, golden = load_cards(suite), load_golden(suite)
    fields = {card["id"]: store_fields(card, suite.kb.filterable) for card in rows_of(kb.cards)}
    both = {"$and": [in_store_values(access["filter"]), in_store_values(access["entitled"])]}
    found = tuple(card for card in fields if matches(both, fields[card]))
    return Judge(suite, kb, golden.cases), dict.fromkeys(GOLD, found), golden.cases, fields


def test_half_of_the_cases_lose_their_gold_to_the_filter(example: Any) -> None:
    judge, rankings, _, _ = example
    judged = [judge(case, rankings[case]) for case in GOLD]
    excluded = [METRICS["false_exclusion"].compute(j, 10) for j in judged]
    recall = [METRICS["recall"].compute(j, 10) for j in judged]
    assert excluded == [0.0, 1.0, 1.0, 0.0]
    assert sum(j.has_gold for j in judged) == 4
    assert sum(recall) / 4 == 0.50


def test_an_evaluator_that_rebuilds_the_gold_after_filtering_flatters_itself(example: Any) -> None:
    """The invalid way: gold that the filter hides is dropped, and recall reads 1.00."""
    _, rankings, cases, fields = example
    flattered = []
    for case in rows_of(cases):
        gold = [card for card in case["grades"] if matches({"language": {"$eq": "en-US"}}, fields[card])]
        if gold:
            flattered.append(sum(card in rankings[case["id"]] for card in gold) / len(gold))
    assert sum(flattered) / len(flattered) == 1.00
    assert len(flattered) == 2


def test_leakage_counts_cards_outside_the_askers_access(example: Any) -> None:
    judge, *_ = example
    assert METRICS["leakage"].compute(judge("q1", ("d1", "d5", "d2")), 10) == 1.0


def test_gold_the_asker_may_not_see_is_no_gold(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "cards.jsonl", [{"id": "a", "text": "x", "tier": "gold"}, {"id": "b", "text": "y", "tier": "silver"}]
    )
    write_lines(
        tmp_path / "golden.jsonl",
        [
            {"id": "q", "query": "?", "expected": ["a", "b"], "entitled": {"tier": "silver"}},
            {"id": "none", "query": "?", "expected": ["a"], "entitled": {"tier": "silver"}},
        ],
    )
    suite = Suite(folder=tmp_path, name="x")
    judge = Judge(suite, load_cards(suite), load_golden(suite).cases)
    assert METRICS["contract"].compute(judge("q", ("b",)), 5) == 1.0
    assert METRICS["contract"].compute(judge("none", ("b",)), 5) is None
    assert METRICS["false_exclusion"].compute(judge("none", ("b",)), 5) is None
    assert METRICS["leakage"].compute(judge("none", ("b",)), 5) == 0.0


def test_a_filter_beside_the_right_one(desk: Desk) -> None:
    """Tier silver is six cards, domain x four, both three, and its asker may see all."""
    for n, card in enumerate(desk.cards):
        card["tier"] = "silver" if n < 6 else ""
        card["domain"] = "x" if 3 <= n < 7 else ""
    desk.case("a", filter={"tier": "silver"}, right_filter={"domain": "x"})
    desk.case("b", filter={"tier": "silver"})
    figures = desk.exam({"a": ["c0"], "b": ["c0"]}).scores.figures
    own = figures[figures["metric"].str.startswith("predicate")]
    assert dict(zip(own["metric"], own["value"], strict=True)) == {"predicate_precision": 0.5, "predicate_recall": 0.75}
    assert set(own["case"]) == {"a"}
