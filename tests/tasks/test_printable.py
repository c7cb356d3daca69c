"""What is printed can neither command a runner, nor a terminal, nor look like two lines."""

from __future__ import annotations

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgate.tasks.errors import InputError, Problem, Refused
from kbgate.tasks.printable import Lines, printable, printable_json

FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
COMMAND = re.compile(r"^\s*::|##\[|##vso\[|##teamcity\[")
PIECES = [*"a :#[/@\n\r\t\x00\x1b\x85\x9b\u2028\u202e\u2066\ud800", "::", "##vso[", "://u@"]
HOSTILE = st.lists(st.sampled_from(PIECES)).map("".join)


@given(HOSTILE)
def test_whatever_it_is_it_becomes_one_harmless_line(text: str) -> None:
    line = printable(text)
    assert not FORBIDDEN.search(line)
    assert not COMMAND.search(line)
    assert printable(line) == line


@given(HOSTILE, st.integers(min_value=1, max_value=5), st.booleans())
def test_a_stream_is_harmless_however_it_is_written_to(text: str, size: int, flushed: bool) -> None:
    out = io.StringIO()
    lines = Lines(out)
    for start in range(0, len(text), size):
        lines.write(text[start : start + size])
        if flushed:
            lines.flush()
    lines.write("\n")
    for line in out.getvalue().split("\n"):
        assert not FORBIDDEN.search(line)
        assert not re.match(r"\s*::", line)


@given(st.dictionaries(HOSTILE.filter(lambda text: "\ud800" not in text), HOSTILE))
def test_printed_json_means_the_same(content: dict[str, str]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    printed = printable_json(text)
    assert json.loads(printed) == content
    for line in printed.split("\n"):
        assert not FORBIDDEN.search(line)
        assert not COMMAND.search(line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("::error::x", ": :error::x"),
        ("  ::add-mask::x", "  : :add-mask::x"),
        ("a::b", "a::b"),
        ("a\r\n::error::x", "a  ::error::x"),
        ("##vso[task.complete]", "# #vso[task.complete]"),
        ("\x1b[31mred", "\ufffd[31mred"),
        ("abc\u202ecba", "abc\ufffdcba"),
        ("http://user:pw@host/x", "http://***@host/x"),
        ("two@example.org, http://host", "two@example.org, http://host"),
        ("café 日本 a\u0301 \u200b", "café 日本 a\u0301 \u200b"),
    ],
)
def test_what_goes_out_and_what_stays(text: str, line: str) -> None:
    assert printable(text) == line


def test_errors_are_harmless_wherever_they_are_told() -> None:
    error = InputError([Problem("a\n::error::x", 1, "says \x1b[2J"), Problem("b", 0, "http://u:pw@h")])
    assert str(error).split("\n") == ["a ::error::x:1: says \ufffd[2J", "b: http://***@h"]
    assert str(Refused("::error::x\n::error::y https://token@h")) == ": :error::x\n: :error::y https://***@h"
