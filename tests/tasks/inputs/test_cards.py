from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from kbgate.tasks.domain import KnowledgeBase
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.settings import Kb, Suite


def load(folder: Path, path: str) -> KnowledgeBase:
    return load_cards(Suite(folder=folder, name="x", kb=Kb(path=path)))


def test_every_mistake_of_a_file_with_its_line(tmp_path: Path) -> None:
    lines = [
        {"id": "a", "text": "fine"},
        {"id": "a", "text": "twice"},
        {"id": 7, "text": "number"},
        {"id": "b", "txt": "typo"},
        {"id": "c", "text": "x", "tier": "bronze"},
        {"id": "d", "text": "x", "valid_from": "soon"},
        {"id": "e", "text": "x", "valid_from": "2026-02-01", "valid_until": "2026-01-01"},
        {"id": "f", "text": " ", "title": ""},
        {"id": "g", "text": "x", "metadata": {"language": "en"}},
        {"id": "h", "text": "x", "metadata": {"n": [1, "a"]}},
        {"id": " i", "text": "x"},
    ]
    (tmp_path / "cards.jsonl").write_text("\n".join(map(json.dumps, lines)))
    kb = load(tmp_path, "cards.jsonl")
    assert list(kb.cards) == ["a"]
    said = {p.line: p.sentence for p in kb.problems if p.line != 4}
    assert said[2] == "id 'a' is taken by cards.jsonl:1"
    assert said[3] == "id: Input should be a valid string"
    assert "tier" in said[5]
    assert "valid_from" in said[6]
    assert said[7] == "card 'e' is valid from 2026-02-01 until 2026-01-01: never"
    assert said[8] == "card 'f' has neither title nor text"
    assert "'language' is the name of a card's own field" in said[9]
    assert "neither text, number, yes/no nor a list" in said[10]
    assert "without spaces at its ends" in said[11]
    assert {p.sentence for p in kb.problems if p.line == 4} == {"unknown key 'txt'; did you mean 'text'?", "'text' is missing"}


def test_ids_compare_in_one_unicode_form(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"id": "cafe\\u0301", "text": "x"}\n{"id": "caf\\u00e9", "text": "y"}')
    assert "is taken by" in load(tmp_path, "c.jsonl").problems[0].sentence


def test_csv_texts_are_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(
        "id,title,text,topics,valid_until,metadata.group\n00123,NA,1e5,a; b,2026-01-31,x\n", encoding="utf-8-sig"
    )
    kb = load(tmp_path, "c.csv")
    assert not kb.problems
    (card,) = kb.cards.values()
    assert (card.id, card.title, card.text, card.topics) == ("00123", "NA", "1e5", ("a", "b"))
    assert card.valid_until == "2026-01-31"
    assert card.metadata == {"group": "x"}


def test_parquet_and_jsonl_are_the_same_cards(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "text": "one", "topics": ["t"], "metadata": {"group": "x"}},
        {"id": "b", "text": "two", "topics": [], "metadata": {"other": "y"}},
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "c.parquet")
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)))
    parquet, jsonl = load(tmp_path, "c.parquet"), load(tmp_path, "c.jsonl")
    assert not parquet.problems
    assert {n: card.hash for n, card in parquet.cards.items()} == {n: card.hash for n, card in jsonl.cards.items()}


def test_a_folder_of_markdown(tmp_path: Path) -> None:
    (tmp_path / "kb" / "sub").mkdir(parents=True)
    (tmp_path / "kb" / "sub" / "a.md").write_text("---\ntier: gold\ntopics: [x, '007']\n---\n# Heading\n\nBody\r\n")
    (tmp_path / "kb" / "b.txt").write_text("Only text")
    kb = load(tmp_path, "kb")
    assert not kb.problems
    assert [(card.id, card.title, card.text, card.tier) for card in kb.cards.values()] == [
        ("b", "", "Only text", ""),
        ("sub/a", "Heading", "# Heading\n\nBody", "gold"),
    ]
    assert kb.cards["sub/a"].topics == ("x", "007")


def test_markdown_has_two_endings_and_one_of_a_name_is_the_card(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.MARKDOWN").write_text("---\ntier: gold\n---\n# Heading")
    (card,) = load(tmp_path, "kb").cards.values()
    assert (card.id, card.title, card.tier) == ("a", "Heading", "gold")
    (tmp_path / "kb" / "a.md").write_text("# Another")
    (problem,) = load(tmp_path, "kb").problems
    assert str(problem) == "a.md:1: id 'a' is taken by a.MARKDOWN:1"


def test_a_comment_in_a_block_of_code_is_no_title(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text("Guide\n===\n\n```sh\n# remove everything first\n```\n")
    assert load(tmp_path, "kb").cards["a"].title == "Guide"


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("---\n---\nBody", "Body"),
        ("---\nA rule above.\n\n---\n\nAnd below.", "---\nA rule above.\n\n---\n\nAnd below."),
        ("--- not a rule\nBody", "--- not a rule\nBody"),
    ],
)
def test_a_rule_is_not_always_front_matter(text: str, body: str, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text(text)
    kb = load(tmp_path, "kb")
    assert not kb.problems
    assert kb.cards["a"].text == body


def test_front_matter_that_is_not_yaml_is_one_sentence_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text("---\ntitle: a\ntopics: [x\n---\nBody")
    (problem,) = load(tmp_path, "kb").problems
    assert problem.file == "a.md"
    assert "\n" not in problem.sentence


def test_parquet_with_an_index_of_pandas(tmp_path: Path) -> None:
    table = pd.DataFrame([{"id": "a", "text": "x"}, {"id": "b", "text": "y"}])
    table[table["id"] == "b"].to_parquet(tmp_path / "c.parquet")
    kb = load(tmp_path, "c.parquet")
    assert not kb.problems
    assert list(kb.cards) == ["b"]


def test_a_beir_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "1", "title": "T", "text": "x", "metadata": {"page": 3}}')
    assert load(tmp_path, ".").cards["1"].title == "T"


@pytest.mark.parametrize(("path", "said"), [("no.jsonl", "not found"), ("x.docx", "is none of"), ("empty.jsonl", "no card")])
def test_no_cards_at_all(tmp_path: Path, path: str, said: str) -> None:
    (tmp_path / "x.docx").write_text("")
    (tmp_path / "empty.jsonl").write_text("\n")
    kb = load(tmp_path, path)
    assert not kb.cards
    assert said in kb.problems[0].sentence


def test_whole_numbers_of_parquet_are_text_and_those_of_metadata_numbers(tmp_path: Path) -> None:
    rows = [{"id": n, "text": "x", "domain": 7, "topics": [2024], "metadata.year": 2024} for n in (1, 20)]
    pd.DataFrame(rows).to_parquet(tmp_path / "c.parquet")
    kb = load(tmp_path, "c.parquet")
    assert not kb.problems
    assert list(kb.cards) == ["1", "20"]
    assert (kb.cards["1"].domain, kb.cards["1"].topics, kb.cards["1"].metadata) == ("7", ("2024",), {"year": 2024})


def test_a_column_of_numbers_with_a_gap_is_refused_once(tmp_path: Path) -> None:
    pd.DataFrame({"id": [1, None, 3], "text": ["x"] * 3}).to_parquet(tmp_path / "c.parquet")
    (problem,) = load(tmp_path, "c.parquet").problems
    assert problem.sentence.startswith("column 'id' holds floating-point numbers")


def test_null_is_the_same_in_every_file(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "text": "x", "title": None, "topics": None, "valid_from": None, "metadata": {"k": None, "n": 1.5}},
        {"id": "b", "text": None, "title": "t", "topics": ["t"], "valid_from": "2026-01-01", "metadata": {"k": "v", "n": None}},
        {"id": None, "text": "x", "title": "t", "topics": [], "valid_from": None, "metadata": {"k": "v", "n": None}},
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "c.parquet")
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)))
    parquet, jsonl = load(tmp_path, "c.parquet"), load(tmp_path, "c.jsonl")
    assert {n: card.hash for n, card in parquet.cards.items()} == {n: card.hash for n, card in jsonl.cards.items()}
    assert list(jsonl.cards) == ["a"]
    said = [(problem.line, problem.sentence) for problem in jsonl.problems]
    assert said == [(problem.line, problem.sentence) for problem in parquet.problems]
    assert said == [(2, "'text' is missing"), (3, "'id' is missing")]


def test_what_parquet_alone_can_hold(tmp_path: Path) -> None:
    columns = {"id": ["a"], "text": ["x"], "valid_from": [pd.Timestamp("2026-01-01", tz="UTC")]}
    entries = pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string()))
    pq.write_table(pa.table({**columns, "metadata": entries}), tmp_path / "c.parquet")
    kb = load(tmp_path, "c.parquet")
    assert not kb.problems
    assert (kb.cards["a"].metadata, kb.cards["a"].valid_from) == ({"k": "v"}, "2026-01-01T00:00:00+00:00")
    twice = pa.array([[("k", "v"), ("k", "w")]], pa.map_(pa.string(), pa.string()))
    pq.write_table(pa.table({**columns, "text": [b"\xff"], "metadata": twice}), tmp_path / "c.parquet")
    assert load(tmp_path, "c.parquet").problems


@pytest.mark.parametrize("name", ["", " ", "\u200b", "$gt", "$", "#document", "_cards", "chroma:document"])
def test_a_name_that_the_store_refuses_is_found_before_anything_is_embedded(tmp_path: Path, name: str) -> None:
    (tmp_path / "c.jsonl").write_text(json.dumps({"id": "a", "text": "x", "metadata": {name: "v"}}))
    (problem,) = load(tmp_path, "c.jsonl").problems
    assert "one the store refuses" in problem.sentence
    with pytest.raises(ValidationError, match="keeps for itself"):
        Suite(folder=tmp_path, name="x", kb=Kb(filterable=(name,)))


@pytest.mark.parametrize("text", ["\u200b", "\u3164 \u00ad", "\ufeff"])
def test_what_nobody_sees_is_no_text(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.jsonl").write_text(json.dumps({"id": "a", "text": text, "title": "\u2060"}))
    assert "neither title nor text" in load(tmp_path, "c.jsonl").problems[0].sentence


def test_two_ids_that_look_like_one_are_told_apart_by_code_points(tmp_path: Path) -> None:
    lines = [{"id": "ab", "text": "x"}, {"id": "a\u200db", "text": "x"}, {"id": "b\u200b", "text": "x"}]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, [*lines, {"id": "می\u200cخواهم", "text": "x"}])))
    kb = load(tmp_path, "c.jsonl")
    assert list(kb.cards) == ["ab", "می\u200cخواهم"]
    assert [str(problem) for problem in kb.problems] == [
        "c.jsonl:2: id 'a<U+200D>b' is to the eye the same as 'ab' of c.jsonl:1",
        "c.jsonl:3: id: an id holds no character that nobody sees; remove <U+200B> (found 'b<U+200B>')",
    ]
