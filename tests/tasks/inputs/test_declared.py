"""[kb.types]: what text formats cannot say of themselves, on cards and in rules alike."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.clock import first_second, last_second
from kbgate.tasks.domain import KnowledgeBase
from kbgate.tasks.errors import InputError
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.checks import check_inputs
from kbgate.tasks.inputs.declared import Types, as_declared, rule_as_declared
from kbgate.tasks.inputs.golden import load_golden
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.predicates import in_store_values, matches, store_fields
from kbgate.tasks.settings import Suite
from tests.conftest import write_lines

TOML = """name = "x"
[kb]
path = "{path}"
filterable = ["year", "free", "audience", "seen"]
types = {{year = "number", free = "boolean", audience = "list", seen = "date"}}
"""


def suite(folder: Path, path: str) -> Suite:
    (folder / "suite.toml").write_text(TOML.format(path=path))
    return load_suite(folder)


def cards_of_csv(folder: Path, *rows: str) -> KnowledgeBase:
    head = "id,text,metadata.year,metadata.free,metadata.audience,metadata.seen"
    (folder / "cards.csv").write_text("\n".join([head, *rows]) + "\n")
    return load_cards(suite(folder, "cards.csv"))


DAY = first_second("2026-05-31")
GIVEN = {"year": 2024, "free": True, "audience": ["hr", "legal"], "seen": DAY}


def test_columns_of_csv_are_what_they_are_declared(tmp_path: Path) -> None:
    kb = cards_of_csv(tmp_path, "a,x,2024,TRUE,hr; legal,2026-05-31", "b,x,,,,", "c,x,-0.5,no,it,2026-05-31T10:00:00+02:00")
    assert kb.problems == ()
    assert kb.cards["a"].metadata == GIVEN
    assert kb.cards["b"].metadata == {}
    assert kb.cards["c"].metadata == {"year": -0.5, "free": False, "audience": ["it"], "seen": DAY + 8 * 3600}


def test_front_matter_is_what_it_is_declared(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    head = "year: 2024\nfree: yes\naudience: [hr, legal]\nseen: 2026-05-31\n"
    (tmp_path / "kb" / "a.md").write_text("---\nmetadata:\n  " + head.replace("\n", "\n  ").rstrip() + "\n---\nx\n")
    (tmp_path / "kb" / "b.md").write_text("---\nmetadata:\n  year:\n  audience: hr\n---\nx\n")
    kb = load_cards(suite(tmp_path, "kb"))
    assert kb.problems == ()
    assert kb.cards["a"].metadata == GIVEN
    assert kb.cards["b"].metadata == {"audience": ["hr"]}


def test_what_is_of_its_type_already_stays(tmp_path: Path) -> None:
    write_lines(tmp_path / "cards.jsonl", [{"id": "a", "text": "x", "metadata": GIVEN}])
    kb = load_cards(suite(tmp_path, "cards.jsonl"))
    assert kb.problems == ()
    assert kb.cards["a"].metadata == GIVEN


def test_without_a_declaration_text_stays_text(tmp_path: Path) -> None:
    (tmp_path / "cards.csv").write_text("id,text,metadata.year\na,x,2024\n")
    (tmp_path / "suite.toml").write_text('name = "x"\n[kb]\npath = "cards.csv"\nfilterable = ["year"]\n')
    assert load_cards(load_suite(tmp_path)).cards["a"].metadata == {"year": "2024"}


def test_what_is_not_as_declared_is_told_all_at_once(tmp_path: Path) -> None:
    kb = cards_of_csv(tmp_path, "a,x,about 2024,perhaps,hr,31.5.2026", "b,x,2024,1,hr,2026-05-31")
    assert [str(problem) for problem in kb.problems] == [
        "cards.csv:2: metadata.year: [kb.types] says number: write a number such as 2024 or -0.5 (found 'about 2024')",
        "cards.csv:2: metadata.free: [kb.types] says boolean: write one of true, false, yes, no, 1 and 0 (found 'perhaps')",
        "cards.csv:2: metadata.seen: [kb.types] says date: write a date such as 2026-05-31 or 2026-05-31T18:00:00+02:00 "
        "(found '31.5.2026')",
    ]
    assert set(kb.cards) == {"b"}
    assert set(kb.rejected) == {"a"}


@pytest.mark.parametrize("odd", ["nan", "inf", "1_000", "1,5", "0x1f", "٢٠٢٤", "1e999", "9" * 30, "--1", "1 2"])
def test_a_number_is_one_that_can_be_compared(odd: str, tmp_path: Path) -> None:
    kb = load_cards_of_jsonl(tmp_path, {"year": odd})
    assert len(kb.problems) == 1
    assert not kb.cards


def load_cards_of_jsonl(folder: Path, metadata: dict[str, Any]) -> KnowledgeBase:
    write_lines(folder / "cards.jsonl", [{"id": "a", "text": "x", "metadata": metadata}])
    return load_cards(suite(folder, "cards.jsonl"))


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"year": True}, "(found True)"),
        ({"free": 1}, "(found 1)"),
        ({"seen": {"on": "2026-05-31"}}, "(found {'on': '2026-05-31'})"),
        ({"year": ["2024", "x"]}, "(found 'x')"),
    ],
)
def test_a_value_of_another_type_is_no_text_to_read(metadata: dict[str, Any], found: str, tmp_path: Path) -> None:
    (problem,) = load_cards_of_jsonl(tmp_path, metadata).problems
    assert str(problem).endswith(found)


def test_each_item_of_a_list_is_as_declared(tmp_path: Path) -> None:
    assert load_cards_of_jsonl(tmp_path, {"year": ["2024", "2025", " "]}).cards["a"].metadata == {"year": [2024, 2025]}


TYPES: Types = {"seen": "date", "year": "number"}
LAST = last_second("2026-05-31")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"seen": "2026-05-31"}, {"seen": DAY}),
        ({"seen": {"$gte": "2026-05-31"}}, {"seen": {"$gte": DAY}}),
        ({"seen": {"$lt": "2026-05-31"}}, {"seen": {"$lt": DAY}}),
        ({"seen": {"$gt": "2026-05-31"}}, {"seen": {"$gt": LAST}}),
        ({"seen": {"$lte": "2026-05-31"}}, {"seen": {"$lte": LAST}}),
        ({"seen": {"$in": ["2026-05-31", DAY]}}, {"seen": {"$in": [DAY, DAY]}}),
        ({"$or": [{"seen": "2026-05-31T00:00:00Z"}, {"year": "2026"}]}, {"$or": [{"seen": DAY}, {"year": "2026"}]}),
        ({"seen": "soon"}, {"seen": "soon"}),
        ({"seen": "9999-12-31T23:00:00-12:00"}, {"seen": first_second("9999-12-31T23:00:00-12:00")}),
        ("no rule", "no rule"),
        (None, None),
    ],
)
def test_days_in_a_rule_are_instants(written: object, read: object) -> None:
    assert rule_as_declared(written, TYPES) == read


def test_a_rule_and_a_card_of_one_day_meet(tmp_path: Path) -> None:
    """A bare day is its first second on a card; after it, and up to it, mean its end in a rule."""
    given = suite(tmp_path, "cards.jsonl")
    rows = [("day", "2026-05-31"), ("noon", "2026-05-31T12:00:00Z"), ("next", "2026-06-01")]
    write_lines(tmp_path / "cards.jsonl", [{"id": name, "text": "x", "metadata": {"seen": seen}} for name, seen in rows])
    kb = load_cards(given)

    def meets(condition: object) -> list[str]:
        rule = in_store_values(rule_as_declared({"seen": condition}, given.kb.types))  # type: ignore[dict-item]
        return [name for name, _ in rows if matches(rule, store_fields(kb.cards[name], given.kb.filterable))]

    assert meets("2026-05-31") == ["day"]
    assert meets({"$lte": "2026-05-31"}) == ["day", "noon"]
    assert meets({"$lt": "2026-05-31"}) == []
    assert meets({"$gt": "2026-05-31"}) == ["next"]
    assert meets({"$gte": "2026-05-31"}) == ["day", "noon", "next"]


def test_rules_on_declared_keys_are_checked(tmp_path: Path) -> None:
    cards_of_csv(tmp_path, "a,x,2024,true,hr;legal,2026-05-31")
    rules = [{"year": {"$gte": 2020}}, {"free": True}, {"audience": {"$contains": "hr"}}, {"seen": {"$gte": "2026-01-01"}}]
    rules += [{"year": "2024"}, {"seen": {"$gte": "soon"}}, {"seen": "soon"}, {"seen": {"$gt": "2026-05-31"}}]
    write_lines(
        tmp_path / "golden.jsonl", [{"id": f"q{n}", "query": "?", "expected": ["a"], "filter": r} for n, r in enumerate(rules)]
    )
    given = load_suite(tmp_path)
    with pytest.raises(InputError) as caught:
        check_inputs(given, load_cards(given), load_golden(given), None)
    said = [str(problem) for problem in caught.value.problems]
    assert [sentence.split(":")[1] for sentence in said] == ["5", "6", "7", "8"]
    assert "it asks for text in 'year', which is a number in 1 card (2024 in 'a', cards.csv:2); ask for a number" in said[0]
    assert "$gte on 'seen' compares numbers, found 'soon'" in said[1]
    assert "it asks for text in 'seen', which is a number in 1 card (2026-05-31T00:00:00+00:00 in 'a'" in said[2]
    assert "no card satisfies it: 'seen' is a number in 1 card (2026-05-31T00:00:00+00:00 in 'a', cards.csv:2)" in said[3]


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('filterable = ["year"]\ntypes = {yaer = "number"}', "kb: types.yaer: is not in filterable; did you mean 'year'?"),
        ('filterable = ["year"]\ntypes = {year = "integer"}', "kb.types.year"),
        ('filterable = ["year"]\ntypes = "number"', "kb.types"),
    ],
)
def test_a_declaration_that_does_nothing_is_refused(toml: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(f'name = "x"\n[kb]\n{toml}\n')
    with pytest.raises(InputError, match=said.replace("?", r"\?")):
        load_suite(tmp_path)


def test_declaring_again_changes_nothing() -> None:
    once, mistakes = as_declared({"seen": "2026-05-31", "year": "2024", "other": "1"}, TYPES)
    assert (as_declared(once, TYPES), mistakes) == ((once, []), [])
    assert once == {"seen": DAY, "year": 2024, "other": "1"}


def test_a_declaration_makes_another_card_of_it(tmp_path: Path) -> None:
    """What filters see changed, so the baseline's manifest says so too."""
    (tmp_path / "cards.csv").write_text("id,text,metadata.year\na,x,2024\n")
    given = suite(tmp_path, "cards.csv")
    plain = given.model_copy(update={"kb": given.kb.model_copy(update={"types": {}})})
    assert load_cards(given).cards["a"].hash != load_cards(plain).cards["a"].hash
    assert dataclasses.replace(load_cards(given).cards["a"], hash="", metadata={}) == dataclasses.replace(
        load_cards(plain).cards["a"], hash="", metadata={}
    )
