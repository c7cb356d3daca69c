from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.domain import GoldenSet
from kbgate.tasks.errors import InputError
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.checks import check_inputs
from kbgate.tasks.inputs.golden import load_golden
from kbgate.tasks.inputs.subset import select_fast
from kbgate.tasks.settings import Kb, Suite
from tests.conftest import write_lines


def load(folder: Path, *cases: dict[str, Any]) -> GoldenSet:
    write_lines(folder / "golden.jsonl", list(cases))
    return load_golden(Suite(folder=folder, name="x"))


def case(**fields: Any) -> dict[str, Any]:
    return {"id": "q", "query": "why?", **fields}


@pytest.mark.parametrize(
    ("fields", "groups"),
    [
        ({"must_cite_one_of": ["b", "a"]}, (("a", "b"),)),
        ({"expected": ["b", "a"]}, (("a",), ("b",))),
        ({"groups": [["a", "a2"], ["b"]]}, (("a", "a2"), ("b",))),
        ({"evidence": [{"card": "a", "text": "x"}, {"card": "a", "start": 1, "end": 2}]}, (("a",),)),
        ({"grades": {"a": 2, "b": 1}}, (("a", "b"),)),
        ({"kind": "no_match"}, ()),
    ],
)
def test_every_form_of_gold_is_groups(tmp_path: Path, fields: dict[str, Any], groups: tuple[tuple[str, ...], ...]) -> None:
    golden = load(tmp_path, case(**fields))
    assert not golden.problems
    assert golden.cases["q"].groups == groups


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "no gold"),
        ({"kind": "no_match", "expected": ["a"]}, "a no_match case has no gold"),
        ({"expected": ["a"], "must_cite_one_of": ["a"]}, "stands in 2 forms"),
        ({"groups": [["a"], []]}, "an empty group can never be satisfied"),
        ({"grades": {"a": 0}}, "greater than or equal to 1"),
        ({"expected": ["a", "b"], "grades": {"a": 1}}, "none for gold 'b'"),
        ({"evidence": [{"card": "a"}]}, "give either text, or start and end"),
        ({"evidence": [{"card": "a", "text": "x", "start": 3}]}, "give either text, or start and end"),
        ({"evidence": [{"card": "a", "text": ""}]}, "at least 1 character"),
        ({"grades": {"a": 10**400}}, "less than or equal to 1000"),
        ({"canary": True, "kind": "no_match"}, "a canary without gold could never fail"),
        ({"id": "two\nlines", "expected": ["a"]}, "an id is one line"),
        ({"query": "  ", "expected": ["a"]}, "is empty"),
        ({"expected": ["a"], "attack": "hypnosis"}, "attack"),
        ({"expcted": ["a"]}, "did you mean 'expected'?"),
        ({"expected": ["a"], "split": "dev"}, "split: not available yet"),
        ({"expected": ["a"], "canary": "yes"}, "valid boolean"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    golden = load(tmp_path, case(id="ok", kind="no_match"), case(**fields))
    assert golden.problems[0].line == 2
    assert any(said in p.sentence for p in golden.problems)


def test_an_empty_golden_set_passes_nobody(tmp_path: Path) -> None:
    assert "an empty exam passes nobody" in load(tmp_path).problems[0].sentence


def test_the_hash_is_of_what_makes_runs_comparable(tmp_path: Path) -> None:
    def hash_of(**fields: Any) -> str:
        (only,) = load(tmp_path, case(**{"expected": ["a"], **fields})).cases.values()
        return only.hash

    same = [hash_of(), hash_of(notes="n"), hash_of(topic="t"), hash_of(id="other"), hash_of(groups=[["a"]], expected=[])]
    assert len(set(same)) == 1
    other = [
        hash_of(query="how?"), hash_of(expected=["b"]), hash_of(grades={"a": 2}), hash_of(filter={"tier": "gold"}),
        hash_of(entitled={"tier": "gold"}), hash_of(language="en"), hash_of(canary=True), hash_of(kind="adversarial"),
    ]  # fmt: skip
    assert len({same[0], *other}) == 9


def inputs(folder: Path, *cases: dict[str, Any]) -> tuple[Any, ...]:
    write_lines(folder / "cards.jsonl", [{"id": "card-one", "text": "café au lait"}, {"id": "two", "text": "y"}])
    suite = Suite(folder=folder, name="x", kb=Kb(filterable=("group",)))
    write_lines(folder / "golden.jsonl", list(cases))
    return suite, load_cards(suite), load_golden(suite)


def test_labels_are_held_against_cards_all_at_once(tmp_path: Path) -> None:
    given = inputs(
        tmp_path,
        case(id="1", expected=["card-on"]),
        case(id="2", evidence=[{"card": "card-one", "text": "tea"}]),
        case(id="3", evidence=[{"card": "card-one", "start": 3, "end": 40}]),
        case(id="4", expected=["two"], filter={"gruop": "x"}),
        case(id="5", expected=["two"], entitled={"group": {"$ne": "x"}}),
        case(id="6", evidence=[{"card": "card-one", "text": "cafe\u0301 au"}]),
    )
    with pytest.raises(InputError) as caught:
        check_inputs(*given, None)
    said = [str(p) for p in caught.value.problems]
    assert said[0].startswith(
        "golden.jsonl:1: gold 'card-on' of case '1' is no card of the knowledge base; did you mean 'card-one'?"
    )
    assert said[1] == "golden.jsonl:2: evidence 'tea' of case '2' does not stand in card 'card-one'"
    assert "is outside card 'card-one' (12 characters)" in said[2]
    assert "filter: unknown field 'gruop'; did you mean 'group'?" in said[3]
    assert "lets cards without the field through" in said[4]
    assert len(said) == 5


def test_beir_judgments_are_one_group_of_what_is_relevant(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}\n{"_id": "d2", "text": "y"}')
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "q"}\n{"_id": "2", "text": "unjudged"}')
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n1\td2\t0\n")
    golden = load_golden(Suite(folder=tmp_path, name="x", kb=Kb(path=".")))
    assert (golden.cases["1"].groups, golden.cases["1"].grades) == ((("d1",),), {"d1": 2})
    assert golden.unjudged == 1


def test_judgments_without_a_header_are_named(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}')
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "q"}\n{"text": "no id"}')
    (tmp_path / "qrels.tsv").write_text("1\td1\t1\n")
    suite = Suite(folder=tmp_path, name="x", kb=Kb(path="."))
    assert "qrels.tsv:1: the header line lacks query-id, corpus-id, score" in str(load_golden(suite).problems[0])
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t1\n")
    assert [str(p) for p in load_golden(suite).problems] == ["queries.jsonl:2: '_id' is missing or no text"]


def test_bad_judgments_are_named(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "x"}')
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "q"}')
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\thigh\n9\td1\t1\n")
    said = [str(p) for p in load_golden(Suite(folder=tmp_path, name="x", kb=Kb(path="."))).problems]
    assert any("qrels.tsv:2: score is a whole number, found 'high'" in s for s in said)
    assert any("judges the unknown query '9'" in s for s in said)


def test_the_fast_subset_is_stable_stratified_and_keeps_canaries(tmp_path: Path) -> None:
    cases = [
        case(id=f"{kind}-{language}-{n}", kind=kind, language=language, canary=n == 0 and kind == "golden",
             **({} if kind == "no_match" else {"expected": ["a"]}))
        for kind, count in (("golden", 60), ("no_match", 6), ("adversarial", 12))
        for language in ("en", "es")
        for n in range(count)
    ]  # fmt: skip
    golden = load(tmp_path, *cases).cases
    fast = select_fast(golden, 30, None)
    assert len(fast) == 30
    assert {"golden-en-0", "golden-es-0"} <= set(fast)
    strata = [{(case.kind, case.language) for case in cases.values()} for cases in (fast, golden)]
    assert strata[0] == strata[1]
    shuffled = random.Random(5).sample(sorted(golden), len(golden))
    assert set(select_fast({name: golden[name] for name in shuffled}, 30, None)) == set(fast)
    assert len(select_fast(golden, 500, None)) == len(golden)
    assert set(select_fast(golden, 1, None)) == {"golden-en-0", "golden-es-0"}


def test_what_nobody_sees_asks_nothing_and_names_no_second_case(tmp_path: Path) -> None:
    gold = {"must_cite_one_of": ["a"]}
    golden = load(tmp_path, case(query="\u200b\u2060", **gold), case(id="a", **gold), case(id="a\u200d", **gold))
    assert list(golden.cases) == ["a"]
    assert [str(problem) for problem in golden.problems] == [
        "golden.jsonl:1: query: is empty (found '<U+200B><U+2060>')",
        "golden.jsonl:3: id 'a<U+200D>' is to the eye the same as 'a' of golden.jsonl:2",
    ]
