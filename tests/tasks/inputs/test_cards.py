from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

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
    assert "id: Input should be a valid string (found 7)" in said[3]
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
