from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgate.tasks.errors import InputError
from kbgate.tasks.records import canonical, clean, digest, parse_json, read_jsonl, read_table, write_text


def test_bad_lines_are_named_and_good_ones_kept(tmp_path: Path) -> None:
    file = tmp_path / "cards.jsonl"
    file.write_text('{"id": "a"}\n\n[1]\n{"id": \n{"x": NaN}\n{"id": "b"}', encoding="utf-8")
    records, problems = read_jsonl(file)
    assert [(r.line, r.content["id"]) for r in records] == [(1, "a"), (6, "b")]
    assert [p.line for p in problems] == [3, 4, 5]
    assert str(problems[0]) == "cards.jsonl:3: needs an object {...}, found list"


def test_characters_that_end_no_line_of_jsonl(tmp_path: Path) -> None:
    file = tmp_path / "cards.jsonl"
    file.write_text('{"id": "a\u2028b\x85c"}\n', encoding="utf-8")
    records, problems = read_jsonl(file)
    assert not problems
    assert records[0].content["id"] == "a\u2028b\x85c"


def test_a_file_that_is_not_utf8_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id": "\xff"}')
    with pytest.raises(InputError, match=r"is not UTF-8 \(byte 8\)"):
        read_jsonl(tmp_path / "a.jsonl")


@given(st.text(st.characters(codec=None)))
def test_cleaning_keeps_offsets_and_can_be_encoded(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned) == len(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert clean(cleaned) == cleaned


def test_lone_surrogates_in_json_escapes_are_cleaned() -> None:
    assert parse_json('{"a\\u0000": ["\\ud800x"]}') == {"a\ufffd": ["\ufffdx"]}


def test_texts_of_a_table_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text\n00123,NA\n1e5,"null\nsecond line"\n', encoding="utf-8-sig")
    records, problems = read_table(tmp_path / "a.csv")
    assert not problems
    assert [(r.line, r.content) for r in records] == [
        (2, {"id": "00123", "text": "NA"}),
        (3, {"id": "1e5", "text": "null\nsecond line"}),
    ]


def test_every_bad_row_of_a_table_is_named_where_it_begins(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text\nx\na,"two\nlines"\nb,c,d\nf\u2028g,h\x0ci\n', encoding="utf-8")
    records, problems = read_table(tmp_path / "a.csv")
    assert [str(p) for p in problems] == [
        "a.csv:2: has 1 fields where the header has 2",
        "a.csv:5: has 3 fields where the header has 2",
    ]
    assert [r.content["id"] for r in records] == ["a", "f\u2028g"]


def test_an_unclosed_quotation_mark_swallows_no_row_unseen(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text\na,fine\nb,"never closed\nc,lost\nd,lost\n')
    records, problems = read_table(tmp_path / "a.csv")
    assert [r.content["id"] for r in records] == ["a"]
    assert str(problems[0]).startswith("a.csv:3: is no CSV row")


def test_a_column_that_is_there_twice_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text,id\na,b,c\n")
    assert "column 'id' is there twice" in str(read_table(tmp_path / "a.csv")[1][0])


def test_a_long_field_is_legal(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"id,text\na,{'x' * 200_000}\n")
    assert len(read_table(tmp_path / "a.csv")[0][0].content["text"]) == 200_000


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[" * 100_000, '{"a": Infinity}', "{"])
def test_json_that_is_none_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_equal_content_gives_equal_text_and_nan_is_refused() -> None:
    assert canonical({"b": 1, "a": "é"}) == '{"a":"é","b":1}'
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    with pytest.raises(ValueError, match=r"not JSON compliant"):
        canonical(float("nan"))


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_text(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(file, "\ud800")
    assert file.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]
