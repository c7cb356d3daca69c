"""The four-case, six-document example: tenant acme, and an en-US filter that hides the en-GB and fr-FR golds."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from kbgate.tasks.comparison.scoring import Judge
from kbgate.tasks.domain import Cases, Mode
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.golden import load_golden
from kbgate.tasks.metrics import METRICS, Judged
from kbgate.tasks.predicates import both, in_store_values, matches, store_fields
from kbgate.tasks.retrieval import run_of
from kbgate.tasks.settings import Kb, Suite
from kbgate.tasks.tables import Fields, Figure, Hits
from tests.conftest import write_lines
from tests.exams import Desk

DOCUMENTS = [("d1", "en-US", "acme"), ("d2", "en-GB", "acme"), ("d3", "fr-FR", "acme"), ("d4", "en-US", "acme"),
             ("d5", "en-US", "other"), ("d6", "en-US", "acme")]  # fmt: skip
GOLD = {"q1": "d1", "q2": "d2", "q3": "d3", "q4": "d4"}


class Example(NamedTuple):
    suite: Suite
    cases: Cases
    fields: dict[str, Fields]
    let_through: tuple[str, ...]

    def judged(self, case: str, ranking: tuple[str, ...]) -> Judged:
        run = run_of("exact", {}, {"exact": {case: Hits.of((card, 1.0) for card in ranking)}}, Mode.FULL)
        return Judge(self.suite, load_cards(self.suite))(self.cases[case], run, "exact")


@pytest.fixture
def example(tmp_path: Path) -> Example:
    cards = [{"id": i, "text": "x", "language": lang, "metadata": {"tenant": tenant}} for i, lang, tenant in DOCUMENTS]
    access = {"filter": {"language": "en-US"}, "entitled": {"tenant": "acme"}}
    cases = [{"id": q, "query": "?", "expected": [gold], **access} for q, gold in GOLD.items()]
    write_lines(tmp_path / "cards.jsonl", cards)
    write_lines(tmp_path / "golden.jsonl", cases)
    suite = Suite(folder=tmp_path, name="x", kb=Kb(filterable=("tenant",)))
    kb, golden = load_cards(suite), load_golden(suite)
    fields = {card.id: store_fields(card, suite.kb.filterable) for card in kb.cards.values()}
    wanted = both(in_store_values({"language": "en-US"}), in_store_values({"tenant": "acme"}))
    return Example(suite, golden.cases, fields, tuple(card for card in fields if matches(wanted, fields[card])))


def test_half_of_the_cases_lose_their_gold_to_the_filter(example: Example) -> None:
    judged = [example.judged(case, example.let_through) for case in GOLD]
    excluded = [METRICS["false_exclusion"].compute(j, 10) for j in judged]
    recall = [METRICS["recall"].compute(j, 10) or 0.0 for j in judged]
    assert excluded == [0.0, 1.0, 1.0, 0.0]
    assert sum(j.has_gold for j in judged) == 4
    assert sum(recall) / 4 == 0.50


def test_an_evaluator_that_rebuilds_the_gold_after_filtering_flatters_itself(example: Example) -> None:
    """The invalid way: gold that the filter hides is dropped, and recall reads 1.00."""
    flattered = []
    for case in example.cases.values():
        gold = [card for card in case.grades if matches({"language": {"$eq": "en-US"}}, example.fields[card])]
        if gold:
            flattered.append(sum(card in example.let_through for card in gold) / len(gold))
    assert sum(flattered) / len(flattered) == 1.00
    assert len(flattered) == 2


def test_leakage_counts_cards_outside_the_askers_access(example: Example) -> None:
    assert METRICS["leakage"].compute(example.judged("q1", ("d1", "d5", "d2")), 10) == 1.0


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
    small = Example(suite, load_golden(suite).cases, {}, ())
    assert METRICS["contract"].compute(small.judged("q", ("b",)), 5) == 1.0
    none = small.judged("none", ("b",))
    assert METRICS["contract"].compute(none, 5) is None
    assert METRICS["false_exclusion"].compute(none, 5) is None
    assert METRICS["leakage"].compute(none, 5) == 0.0


def test_a_filter_beside_the_right_one(desk: Desk) -> None:
    """Tier silver is six cards, domain x four, both three, and its asker may see all."""
    for n, card in enumerate(desk.cards):
        card["tier"] = "silver" if n < 6 else ""
        card["domain"] = "x" if 3 <= n < 7 else ""
    desk.case("a", filter={"tier": "silver"}, right_filter={"domain": "x"})
    desk.case("b", filter={"tier": "silver"})
    # Of nothing that was let through no share is the right one: it is absent, not 0.
    desk.cards[9]["domain"] = "y"
    desk.case("c", filter={"domain": "y"}, right_filter={"domain": "x"}, entitled={"tier": "silver"})
    scores = desk.exam({"a": ["c0"], "b": ["c0"], "c": []}).scores.of("exact")
    assert scores[Figure("predicate_precision")] == {"a": 0.5}
    assert scores[Figure("predicate_recall")] == {"a": 0.75, "c": 0.0}
