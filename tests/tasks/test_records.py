from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from kbgate.tasks.errors import InputError
from kbgate.tasks.records import (
    append_line,
    canonical,
    clean,
    digest,
    parse_json,
    problems_of,
    read_jsonl,
    read_table,
    replacing,
    sync_folder,
    write_text,
)


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


def test_what_may_have_taken_other_rows_along_says_so(tmp_path: Path) -> None:
    rows = 'id,text,text\na,b\nc,"d\ne,f\n",g,h\ni,"never closed\nj,k,l\n'
    (tmp_path / "a.csv").write_text(rows)
    problems = read_table(tmp_path / "a.csv")[1]
    assert [(problem.line, problem.takes_more) for problem in problems] == [(1, True), (2, False), (3, True), (6, True)]


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


def test_a_file_is_replaced_at_the_end_of_the_block_and_not_before(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.bin"
    with replacing(file) as temporary:
        assert temporary.parent == file.parent
        temporary.write_bytes(b"whole")
        assert not file.exists()
    assert file.read_bytes() == b"whole"
    assert [p.name for p in file.parent.iterdir()] == ["a.bin"]


def test_a_block_that_failed_or_wrote_nothing_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    def fail(file: Path) -> None:
        with replacing(file) as temporary:
            temporary.write_bytes(b"a part")
            raise ZeroDivisionError

    def write_nothing(file: Path) -> None:
        with replacing(file):
            pass

    (tmp_path / "a.bin").write_bytes(b"old")
    for block, error in ((fail, ZeroDivisionError), (write_nothing, FileNotFoundError)):
        with pytest.raises(error):
            block(tmp_path / "a.bin")
        assert (tmp_path / "a.bin").read_bytes() == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_two_that_replace_one_file_do_not_write_into_each_other(tmp_path: Path) -> None:
    with replacing(tmp_path / "a") as first, replacing(tmp_path / "a") as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert (tmp_path / "a").read_text() == "first"


def test_a_torn_last_line_swallows_no_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pread", raising=False)  # Windows has none
    file = tmp_path / "new" / "audit.jsonl"
    append_line(file, {"n": 1})
    append_line(file, {"n": 2})
    file.write_bytes(file.read_bytes() + b'{"n": ')
    append_line(file, {"n": 3})
    assert file.read_bytes() == b'{"n":1}\n{"n":2}\n{"n": \n{"n":3}\n'


def test_a_folder_is_left_alone_where_it_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError

    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        windows.setattr(os, "open", refuse)
        sync_folder(tmp_path)


@pytest.mark.parametrize(
    "text", ["1e999", '{"a": [-1e400]}', "[" * 101 + "]" * 101, "[" * 100_000, '{"a\\u0001": 1, "a\\u0002": 2}']
)
def test_json_that_nobody_can_hold_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"too large|too deeply|there twice"):
        parse_json(text)


def test_a_wrong_value_is_repeated_up_to_a_length() -> None:
    class Row(BaseModel):
        id: int

    with pytest.raises(ValidationError) as caught:
        Row.model_validate({"id": "x" * 10_000})
    assert len(str(next(iter(problems_of(caught.value, "f", 1, Row))))) < 400
