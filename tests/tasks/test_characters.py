"""Characters that nobody sees."""

from __future__ import annotations

import pytest

from kbgate.tasks.characters import as_seen, hidden_in, is_blank, made_visible
from kbgate.tasks.errors import InputError, Problem


@pytest.mark.parametrize("text", ["", " ", "\u200b", "\u2060 \ufeff", "\u3164", "\u00ad\n", "\u2800", "\U000e0041", "\u202e"])
def test_a_text_of_what_nobody_sees_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "\u200ba", "می\u200cخواهم", "👩\u200d💻", "¿", "\ufffd", "0"])
def test_a_text_with_anything_to_see_is_not(text: str) -> None:
    assert not is_blank(text)


def test_what_shapes_its_neighbours_may_stand_in_a_name_and_nothing_else_may() -> None:
    assert [hidden_in(name) for name in ("می\u200cخواهم", "👩\u200d💻", "❤\ufe0f", "plain")] == [""] * 4
    assert [hidden_in(name) for name in ("a\u200b", "\u202ea", "a\u00adb")] == ["\u200b", "\u202e", "\u00ad"]
    assert as_seen("a\u200db\u2060") == "ab"


def test_an_error_shows_code_points() -> None:
    assert made_visible("a\u200b\U000e0041") == "a<U+200B><U+E0041>"
    assert str(Problem("cards.jsonl", 2, "id 'a\u200b' is taken")) == "cards.jsonl:2: id 'a<U+200B>' is taken"


def test_the_same_mistake_in_many_lines_is_one_sentence_that_counts_them() -> None:
    rows = [Problem("a.csv", line, "id: is no text", str(line)) for line in range(2, 12)]
    other = [Problem("a.csv", 3, "unknown key 'x'"), Problem("b.csv", 2, "id: is no text"), Problem("suite.toml", 0, "no")]
    error = InputError([*rows, *other])
    assert len(error.problems) == 13
    assert str(error).split("\n") == [
        "a.csv:2: id: is no text (found 2); the same in 9 more lines: 3, 4, 5, 6, 7 and 4 more",
        "a.csv:3: unknown key 'x'",
        "b.csv:2: id: is no text",
        "suite.toml: no",
    ]
    assert str(InputError(rows[:2])) == "a.csv:2: id: is no text (found 2); the same in 1 more line: 3"
