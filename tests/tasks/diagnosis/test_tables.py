"""Where the tables of a card stand, and when one was cut from its header."""

from __future__ import annotations

import pytest

from kbgate.tasks.diagnosis.causes.table_header import has_table, lost_its_header, table_spans
from kbgate.tasks.domain import Card

HEADED = "| from | to |\n|---|---|\n| a | b |"
BARE = "| a | b |\n| c | d |"


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("", []),
        ("no table", []),
        ("| one | line |", []),
        (BARE, [BARE]),
        (f"{BARE}\n", [BARE]),
        (f"before\n{HEADED}\nafter", [HEADED]),
        (f"{HEADED}\n\n{BARE}", [HEADED, BARE]),
        (f"a | b\n{BARE}", [BARE]),
        (f"| alone | here |\n\n{BARE}\n", [BARE]),
    ],
)
def test_a_table_is_two_lines_in_a_row_with_two_bars_each(text: str, tables: list[str]) -> None:
    assert [text[start:end] for start, end in table_spans(text)] == tables
    assert has_table(text) == bool(tables)


@pytest.mark.parametrize(
    ("then", "now", "lost"),
    [(HEADED, BARE, True), (HEADED, HEADED, False), (BARE, BARE, False), (HEADED, "gone", False), ("", BARE, False)],
)
def test_a_table_lost_its_header_where_it_had_one_and_is_still_a_table(then: str, now: str, lost: bool) -> None:
    assert lost_its_header(Card("c", "", then), Card("c", "", now)) is lost
