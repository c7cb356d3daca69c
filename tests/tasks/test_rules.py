"""A rule and a field of different types or shapes: an error before anything is embedded, a BLOCK where the cards changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbgate.tasks.baseline.files import read_baseline
from kbgate.tasks.conclusions import Reason, VerdictName
from kbgate.tasks.domain import Card, Case, KnowledgeBase, Vanished
from kbgate.tasks.errors import InputError, Refused
from kbgate.tasks.gate.opening import opening
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.checks import check_inputs
from kbgate.tasks.inputs.golden import load_golden
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.predicates import in_store_values, matches, store_fields
from kbgate.tasks.rules import unmet_rules
from kbgate.tasks.rules.stock import Stock
from kbgate.tasks.settings import Kb
from tests.conftest import write_lines
from tests.exams import Desk, filler

FIELDS: list[dict[str, Any]] = [
    {"year": 2024, "free": True, "audience": ["hr", "legal"], "team": "hr", "floor": 2, "marks": [1, 2]},
    {"year": 2010, "free": False, "audience": ["it"], "team": "it", "floor": 3, "marks": [3]},
]
Toml = 'name = "x"\n[kb]\nfilterable = ["year", "free", "audience", "team", "floor", "marks", "mixed"]\n'


def told(folder: Path, cards: list[dict[str, Any]], *cases: dict[str, Any], toml: str = Toml, strict: bool = True) -> list[str]:
    """What is wrong with cases of a knowledge base."""
    (folder / "suite.toml").write_text(toml)
    write_lines(folder / "cards.jsonl", cards)
    return told_of(folder, *cases, strict=strict)


def told_of(folder: Path, *cases: dict[str, Any], strict: bool = True) -> list[str]:
    write_lines(folder / "golden.jsonl", [{"id": f"q{n}", "query": "?", **case} for n, case in enumerate(cases, start=1)])
    suite = load_suite(folder)
    try:
        check_inputs(suite, load_cards(suite), load_golden(suite), read_baseline(suite), strict=strict)
    except InputError as error:
        return [str(problem) for problem in error.problems]
    return []


def cards(*metadata: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    return [{"id": f"c{n}", "text": "x", "metadata": data, **fields} for n, data in enumerate(metadata)]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"audience": "hr"}, 'it asks for text in \'audience\', which is a list of text in 2 cards (["hr", "legal"] in \'c0\', '
                             'cards.jsonl:1); of a list ask {"audience": {"$contains": "hr"}}'),
        ({"audience": {"$in": ["hr", "it"]}}, 'of a list ask {"$or": [{"audience": {"$contains": "hr"}}, '),
        ({"team": {"$contains": "hr"}}, "it asks for a list of text in 'team', which is text in 2 cards (\"hr\" in 'c0', "
                                        'cards.jsonl:1); of one value ask {"team": "hr"}, or declare [kb.types] team = "list"'),
        ({"year": "2024"}, "it asks for text in 'year', which is a number in 2 cards (2024 in 'c0', cards.jsonl:1); ask "),
        ({"free": 1}, "it asks for a number in 'free', which is true/false in 2 cards (true in 'c0', cards.jsonl:1)"),
        ({"year": True}, "it asks for true/false in 'year', which is a number"),
        ({"year": {"$in": ["2024", "2010"]}}, "it asks for text in 'year', which is a number"),
        ({"team": 1}, 'declare [kb.types] team = "number" in suite.toml, or ask for text'),
        ({"team": {"$gt": 1}}, "it asks for a number in 'team', which is text"),
        ({"marks": 1}, 'which is a list of numbers in 2 cards ([1, 2] in \'c0\', cards.jsonl:1); of a list ask {"marks": '),
        ({"marks": {"$contains": "1"}}, "it asks for a list of text in 'marks', which is a list of numbers"),
        ({"$and": [{"team": "hr"}, {"audience": "hr"}]}, "it asks for text in 'audience'"),
        ({"$or": [{"team": "hr"}, {"audience": "hr"}]}, "it asks for text in 'audience'"),
        ({"language": {"$contains": "en"}}, "which is text in 2 cards (\"en\" in 'c0', cards.jsonl:1); of one value ask"),
        ({"language": 1}, "it asks for a number in 'language', which is text"),
        ({"topics": {"$contains": 1}}, "it asks for a list of numbers in 'topics', which is a list of text"),
        ({"team": "HR"}, "no card satisfies it: 'team' is text in 2 cards (\"hr\" in 'c0', cards.jsonl:1); known: hr, it"),
        ({"audience": {"$contains": "legl"}}, "in 2 cards ([\"hr\", \"legal\"] in 'c0', cards.jsonl:1); did you mean 'legal'?"),
        ({"floor": {"$gte": 4}}, "no card satisfies it: 'floor' is a number in 2 cards (2 in 'c0', cards.jsonl:1)"),
        ({"marks": 1}, 'of a list ask {"marks": {"$contains": 1}}'),
        ({"mixed": "x"}, "no card satisfies it: no card has 'mixed'"),
        ({"tier": "gold"}, "no card satisfies it: no card has 'tier'"),
        ({"$and": [{"team": "hr"}, {"floor": 3}]}, "no card satisfies it: 'floor' is a number in 2 cards"),
        ({"valid_from": {"$gte": "2026-01-01"}}, "no card satisfies it: no card has 'valid_from'"),
    ],
)  # fmt: skip
def test_a_rule_that_no_card_satisfies_is_an_error(written: dict[str, Any], said: str, tmp_path: Path) -> None:
    given = cards(*FIELDS, language="en", topics=["a"])
    with_gold, without = told(tmp_path, given, {"expected": ["c0"], "filter": written}, {"kind": "no_match", "filter": written})
    assert with_gold.startswith("golden.jsonl:1: filter: no card ")
    assert said in with_gold
    assert with_gold.endswith("in case 'q1')")
    assert without == with_gold.replace("jsonl:1: f", "jsonl:2: f").replace("case 'q1'", "case 'q2'")


@pytest.mark.parametrize("rule", ["filter", "entitled", "right_filter"])
@pytest.mark.parametrize("strict", [True, False])
def test_every_rule_of_a_case_is_held_against_the_cards(rule: str, strict: bool, tmp_path: Path) -> None:
    (sentence,) = told(tmp_path, cards(*FIELDS), {"expected": ["c0"], rule: {"audience": "hr"}}, strict=strict)
    assert sentence.startswith(f"golden.jsonl:1: {rule}: no card can be compared: it asks for text in 'audience'")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"team": {"$ne": 1}}, "it asks for a number in 'team'"),
        ({"audience": {"$ne": "hr"}}, 'of a list ask {"audience": {"$not_contains": "hr"}}'),
        ({"audience": {"$nin": ["hr", "it"]}}, 'of a list ask {"$and": [{"audience": {"$not_contains": "hr"}}, '),
        ({"team": {"$not_contains": "hr"}}, 'of one value ask {"team": {"$ne": "hr"}}'),
        ({"year": {"$nin": ["2024"]}}, "it asks for text in 'year', which is a number"),
    ],
)
def test_a_rule_that_can_keep_no_card_out_is_one_too(written: dict[str, Any], said: str, tmp_path: Path) -> None:
    (sentence,) = told(tmp_path, cards(*FIELDS), {"expected": ["c0"], "filter": written})
    assert "filter: no card can be compared: " in sentence
    assert said in sentence


@pytest.mark.parametrize(
    "written",
    [
        {"audience": {"$contains": "hr"}},
        {"year": 2024.0},
        {"year": {"$gte": 2020}},
        {"free": True},
        {"team": {"$in": ["hr", "sales"]}},
        {"team": {"$ne": "sales"}},
        {"mixed": {"$ne": "x"}},
        {"$or": [{"audience": "hr"}, {"audience": {"$contains": "hr"}}]},  # whichever shape it has
        {"$or": [{"team": "hr"}, {"tier": "gold"}]},
    ],
)
def test_a_rule_that_cards_satisfy_is_none(written: dict[str, Any], tmp_path: Path) -> None:
    assert (
        told(tmp_path, cards(*FIELDS), {"expected": ["c0"], "filter": written}, {"kind": "no_match", "filter": written}) == []
    )


def test_a_gold_of_another_value_is_excluded_and_of_another_type_an_error(tmp_path: Path) -> None:
    given = cards({"year": 2024}, {"year": "2024"}, {"year": 2010}, {})
    assert told(tmp_path, given, {"expected": ["c2"], "filter": {"year": 2024}}) == []
    assert told(tmp_path, given, {"expected": ["c3"], "filter": {"year": 2024}}) == []
    (sentence,) = told(tmp_path, given, {"expected": ["c2"]}, {"expected": ["c0"], "filter": {"year": "2024"}})
    assert sentence == (
        "golden.jsonl:2: filter: no gold of the case can satisfy it: it asks for text in 'year', which is a number in 1 gold "
        "(2024 in 'c0', cards.jsonl:1); ask for a number (found {\"year\": \"2024\"} in case 'q2')"
    )


@pytest.mark.parametrize(
    ("gold", "wrong"),
    [
        ({"must_cite_one_of": ["c0", "c1"]}, False),  # the other one can
        ({"must_cite_one_of": ["c0", "c2"]}, True),
        ({"expected": ["c0", "c1"]}, True),  # the first would leave the denominator
        ({"groups": [["c1"], ["c0", "c2"]]}, True),
        ({"groups": [["c1"], ["c0", "c3"]]}, False),
        ({"grades": {"c0": 2, "c2": 1}}, True),
    ],
)
def test_one_gold_of_each_group_can(gold: dict[str, Any], wrong: bool, tmp_path: Path) -> None:
    given = cards({"audience": ["hr"]}, {"audience": "hr"}, {"audience": ["it"]}, {"audience": "it"})
    assert bool(told(tmp_path, given, {**gold, "entitled": {"audience": "hr"}})) == wrong


def test_the_same_mistake_is_one_line_that_names_the_others(tmp_path: Path) -> None:
    rule = {"expected": ["c0"], "entitled": {"audience": "hr"}}
    (tmp_path / "suite.toml").write_text(Toml)
    write_lines(tmp_path / "cards.jsonl", cards(*FIELDS))
    write_lines(tmp_path / "golden.jsonl", [{"id": f"q{n}", "query": "?", **rule} for n in range(3)])
    suite = load_suite(tmp_path)
    with pytest.raises(InputError) as caught:
        check_inputs(suite, load_cards(suite), load_golden(suite), None)
    assert len(str(caught.value).splitlines()) == 1
    assert "; the same in 2 more lines: 2, 3" in str(caught.value)


def test_a_key_that_is_not_filterable_yet_hides_no_other_mistake(tmp_path: Path) -> None:
    case = {"expected": ["c0"], "filter": {"year": "2024"}}
    said = told(tmp_path, cards(*FIELDS), case, toml='name = "x"\n')
    assert ["unknown field 'year'" in sentence for sentence in said] == [False, True]
    assert "it asks for text in 'year'" in said[0]


def test_a_rule_that_is_no_rule_is_told_as_that_alone(tmp_path: Path) -> None:
    (sentence,) = told(tmp_path, cards(*FIELDS), {"expected": ["c0"], "filter": {"year": {"$gte": "x"}}})
    assert "$gte on 'year' compares numbers" in sentence


def test_csv_knows_text_alone(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text('name = "x"\n[kb]\npath = "cards.csv"\nfilterable = ["year"]\n')
    (tmp_path / "cards.csv").write_text("id,text,metadata.year\nc0,x,2024\n")
    (sentence,) = told_of(tmp_path, {"expected": ["c0"], "filter": {"year": 2024}})
    assert 'which is text in 1 card ("2024" in \'c0\', cards.csv:2); declare [kb.types] year = "number"' in sentence


def test_front_matter_knows_text_and_lists_of_it(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text('name = "x"\n[kb]\npath = "kb"\nfilterable = ["free", "audience"]\n')
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "c0.md").write_text("---\nmetadata:\n  free: true\n  audience: [hr]\n---\nx\n")
    said = told_of(
        tmp_path, {"expected": ["c0"], "filter": {"free": True}}, {"expected": ["c0"], "entitled": {"audience": "hr"}}
    )
    assert 'which is text in 1 card ("true" in \'c0\', c0.md:1); declare [kb.types] free = "boolean"' in said[0]
    assert "which is a list of text in 1 card ([\"hr\"] in 'c0', c0.md:1)" in said[1]


def test_parquet_has_types_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text('name = "x"\n[kb]\npath = "cards.parquet"\nfilterable = ["year", "tags"]\n')
    rows = [{"id": "c0", "text": "x", "metadata": {"year": 2024, "tags": ["a"]}}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "cards.parquet")
    said = told_of(
        tmp_path,
        {"expected": ["c0"], "filter": {"year": 2024}},
        {"expected": ["c0"], "filter": {"year": "2024"}},
        {"expected": ["c0"], "filter": {"tags": "a"}},
    )
    assert len(said) == 2
    assert "which is a number in 1 card (2024 in 'c0', cards.parquet:1)" in said[0]
    assert "which is a list of text" in said[1]


VALUES: list[Any] = ["a", "b", "1", 1, 2.0, True, False, ["a"], ["a", "b"], [1, 2], [True]]


def rules_on(*names: str) -> st.SearchStrategy[Any]:
    scalar = st.sampled_from(["a", "b", "1", "z", 1, 2, 0, True, False])
    condition = st.one_of(
        scalar,
        st.builds(lambda op, value: {op: value}, st.sampled_from(["$eq", "$ne", "$contains", "$not_contains"]), scalar),
        st.builds(lambda op, value: {op: [value]}, st.sampled_from(["$in", "$nin"]), scalar),
        st.builds(lambda op, value: {op: value}, st.sampled_from(["$gt", "$lte"]), st.integers(0, 3)),
    )
    leaf = st.builds(lambda name, asked: {name: asked}, st.sampled_from(names), condition)
    joined = st.sampled_from(["$and", "$or"])
    return st.recursive(
        leaf,
        lambda part: st.builds(lambda op, parts: {op: parts}, joined, st.lists(part, min_size=2, max_size=3)),
        max_leaves=4,
    )


@given(
    st.lists(st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(VALUES)), min_size=1, max_size=6), rules_on("x", "y")
)
@settings(max_examples=150)
def test_looking_up_is_asking_every_card(metadata: list[dict[str, Any]], rule: Any) -> None:
    known = {f"c{n}": Card(f"c{n}", "", "x", metadata=data) for n, data in enumerate(metadata)}
    asked = in_store_values(rule)
    holds = any(matches(asked, store_fields(card, ("x", "y"))) for card in known.values())
    assert Stock(known, ("x", "y")).satisfies(asked) == holds
    cases = {"q": Case("q", "?", filter=rule)}
    found = unmet_rules(cases, KnowledgeBase(known), Kb(filterable=("x", "y")), None)
    assert holds or found


def test_a_rule_of_a_thousand_values_is_told_by_its_beginning(tmp_path: Path) -> None:
    many = {"team": {"$in": [f"team-{n}" for n in range(1000)]}}
    (sentence,) = told(tmp_path, cards(*FIELDS), {"expected": ["c0"], "filter": many})
    assert len(sentence) < 500


def test_a_number_that_is_no_date_is_shown_as_it_is(tmp_path: Path) -> None:
    toml = 'name = "x"\n[kb]\nfilterable = ["seen"]\ntypes = {seen = "date"}\n'
    said = told(tmp_path, cards({"seen": 9e15}, {"seen": "2026-05-31"}), {"expected": ["c0"], "filter": {"seen": 1}}, toml=toml)
    assert "'seen' is a number in 2 cards (9000000000000000.0 in 'c0', cards.jsonl:1)" in said[0]


def test_many_rules_on_many_cards_take_no_time() -> None:
    known = {f"c{n}": Card(f"c{n}", "", "x", metadata={"owner": f"u{n}"}) for n in range(5000)}
    cases = {f"q{n}": Case(f"q{n}", "?", filter={"owner": f"u{n * 2}"}) for n in range(1000)}
    began = time.perf_counter()
    assert unmet_rules(cases, KnowledgeBase(known), Kb(filterable=("owner",)), None) == []
    assert time.perf_counter() - began < 2  # one by one they would be five million questions


# Where cards of the baseline satisfied it


HIT = filler("c0")


@pytest.fixture
def governed(desk: Desk) -> Desk:
    """Two cases with rules on metadata, accepted while cards satisfied them."""
    desk.settings += '[kb]\nfilterable = ["audience", "year"]\n'
    for n, card in enumerate(desk.cards):
        card["metadata"] = {"audience": "hr" if n < 4 else "it", "year": 2020 + n}
    for n in range(6):
        desk.case(f"q{n}")
    desk.case("asks", entitled={"audience": "hr"})
    desk.case("sieves", filter={"year": {"$lt": 2022}})
    desk.case("moon", kind="no_match", filter={"year": {"$in": [2022, 2023]}})
    desk.accept(answers(desk))
    return desk


def answers(desk: Desk) -> dict[str, Any]:
    some = {"asks": HIT[:4], "sieves": HIT[:2], "moon": HIT[2:4]}
    return {case["id"]: some.get(case["id"], HIT) for case in desk.cases}


def relabel(key: str, turn: Callable[[Any], Any], *names: str) -> Callable[[Desk], None]:
    def change(desk: Desk) -> None:
        for card in desk.cards:
            if not names or card["id"] in names:
                value = turn(card["metadata"].pop(key))
                card["metadata"] |= {key: value} if value is not None else {}

    return change


def gone(*names: str) -> Callable[[Desk], None]:
    def change(desk: Desk) -> None:
        desk.cards = [card for card in desk.cards if card["id"] not in names]

    return change


@pytest.mark.parametrize(
    ("change", "case", "said"),
    [
        (relabel("audience", lambda value: [value]), "asks", "asks: entitled {\"audience\": \"hr\"} was satisfied in the "
         "baseline and no longer is: 'audience' was \"hr\" (text) and is [\"hr\"] (a list of text) in 'c0', cards.jsonl:1; "
         "3 more cards likewise"),
        (relabel("audience", lambda value: [value], "c0"), "asks", "was \"hr\" (text) and is [\"hr\"] (a list of text) in "),
        (relabel("audience", lambda value: None), "asks", "'audience' was \"hr\" (text) and is gone in 'c0'"),
        (relabel("audience", lambda value: "staff"), "asks", "'audience' was \"hr\" (text) and is \"staff\" (text) in 'c0'"),
        (relabel("year", str), "sieves", "'year' was 2020 (a number) and is \"2020\" (text) in 'c0', cards.jsonl:1; 1 "),
        (relabel("year", str, "c0"), "sieves", "'year' was 2020 (a number) and is \"2020\" (text) in 'c0'"),
        (relabel("year", bool), "sieves", "'year' was 2020 (a number) and is true (true/false)"),
        (gone("c2", "c3"), "moon", "card 'c2' is gone, where 'year' was 2022 (a number); 1 more card likewise"),
    ],
)  # fmt: skip
def test_what_only_the_baseline_satisfied_blocks_and_the_change_is_told(
    change: Callable[[Desk], None], case: str, said: str, governed: Desk
) -> None:
    change(governed)
    given = {name: [card for card in ranking if card in HIT] for name, ranking in answers(governed).items()}
    there = {card["id"] for card in governed.cards}
    verdict = governed.judge({name: [card for card in ranking if card in there] for name, ranking in given.items()})
    assert verdict.name == VerdictName.BLOCK
    (reason,) = [reason for reason in unmet(verdict.reasons) if case in reason.cases]
    assert reason.level == "critical"
    assert said in reason.sentence
    # What goes on to block is a mistake for `kbgate check`, as a gold is that vanished.
    suite = load_suite(governed.folder)
    with pytest.raises(InputError, match="in the baseline a card did: "):
        check_inputs(suite, load_cards(suite), load_golden(suite), read_baseline(suite), strict=True)


def unmet(reasons: tuple[Reason, ...]) -> list[Reason]:
    return [reason for reason in reasons if reason.check == "unmet_rules"]


def test_it_is_no_baseline_however_knowingly_it_is_accepted(governed: Desk) -> None:
    relabel("audience", lambda value: [value])(governed)
    with pytest.raises(Refused, match="give these cases another gold or rule"):
        governed.accept(answers(governed), accept_regression=True, anchor=True)


def test_an_exception_excuses_it_until_its_day(governed: Desk) -> None:
    relabel("audience", lambda value: [value])(governed)
    governed.settings += '[[allow]]\ncase = "asks"\ncheck = "unmet_rules"\nreason = "moving"\nuntil = 2026-06-01\n'
    assert unmet(governed.judge(answers(governed)).reasons) == []


def test_a_rule_that_neither_satisfies_is_an_error_with_a_baseline_too(governed: Desk) -> None:
    governed.case("new", filter={"year": "2020"})
    with pytest.raises(InputError, match=r"which is a number in 12 cards .*; none of the baseline's did either"):
        governed.judge({**answers(governed), "new": []})
    governed.case("new", entitled={"audience": "hr"})  # a new case is held against the manifest as any other
    relabel("audience", lambda value: [value])(governed)
    assert unmet(governed.judge({**answers(governed), "new": []}).reasons)[0].cases == ("asks", "new")


def test_what_the_manifest_has_only_a_hash_of_may_have_satisfied(governed: Desk) -> None:
    many = [f"department-{n}" for n in range(9)]
    relabel("audience", lambda value: [*many, "hr"])(governed)
    governed.case("asks", entitled={"audience": {"$contains": "hr"}})
    for file in governed.folder.glob("baseline*"):
        file.unlink()
    governed.accept(answers(governed))
    relabel("audience", lambda value: "hr")(governed)
    (reason,) = unmet(governed.judge(answers(governed)).reasons)
    assert "'audience' was too long for the baseline's manifest and is \"hr\" (text) in 'c0'" in reason.sentence


def test_a_gold_that_vanished_is_told_as_that_alone(governed: Desk) -> None:
    """Its rule finds nothing because it is gone: one loss, one sentence."""
    governed.case("asks", gold="c3", entitled={"audience": "board"})
    governed.cards[3]["metadata"]["audience"] = "board"
    for file in governed.folder.glob("baseline*"):
        file.unlink()
    governed.accept({**answers(governed), "asks": ["c3"]})
    gone("c3")(governed)
    given = {**{name: [card for card in ranking if card != "c3"] for name, ranking in answers(governed).items()}, "asks": []}
    assert governed.exam(given).vanished == (Vanished("asks", "c3"),)
    verdict = governed.judge(given)
    assert (verdict.reasons[0].check, unmet(verdict.reasons)) == ("vanished_gold", [])


# Whose asker may see none of the golds


def test_a_case_whose_asker_may_see_none_of_its_golds_is_told_by_name(governed: Desk) -> None:
    governed.case("outsider", gold="c9", entitled={"audience": "hr"})
    governed.case("insider", must_cite_one_of=["c9", "c0"], entitled={"audience": "hr"})
    governed.case("nobody", kind="no_match", entitled={"audience": "hr"})
    given = {**answers(governed), "outsider": HIT[:4], "insider": HIT[:4], "nobody": HIT[:4]}
    for file in governed.folder.glob("baseline*"):
        file.unlink()
    governed.accept(given)
    verdict = governed.judge(given)
    assert verdict.name == VerdictName.WARN
    assert verdict.headline == "1 case judged by access alone, for its asker may see none of its golds: outsider"
    assert opening(governed.exam(given), verdict).startswith(f"{verdict.headline}; no question lost its answer. If ")
    governed.settings += '[[allow]]\ncase = "outsider"\ncheck = "unseen_gold"\nreason = "must not"\nuntil = 2026-06-01\n'
    assert governed.judge(given).name == VerdictName.PASS
