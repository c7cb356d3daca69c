"""Front matter that says much in little, or nothing that can be told."""

from __future__ import annotations

import time

import pytest

from kbgate.tasks.errors import InputError
from kbgate.tasks.inputs.front_matter import read_front_matter


def front(head: str) -> tuple[object, str]:
    return read_front_matter("a.md", f"---\n{head}\n---\nthe text")


def laughs(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    return "\n".join(lines + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)])


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        (laughs(9), "more than 10000 values"), ("a: &a [*a]", "nested too deeply"), ("a: &a {b: *a}", "nested too deeply"),
        ("a: " + "[" * 20_000, "nested too deeply"), ("a: " + "{b: " * 5_000, "nested too deeply"),
        ("title: one\ntitle: two", "'title' is there twice"), ("a: {b: 1, b: 2}", "'b' is there twice"),
        ("? [a, b]\n: c", "line 2 has a list or a table for a key"), ("a: " + "x" * 100_001, "more than 100000 characters"),
        ("a: *b", "undefined alias"), ("a: [", "not valid YAML"), ("a: \x07", "unreadable"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_is_refused_at_once(head: str, sentence: str) -> None:
    begun = time.monotonic()
    with pytest.raises(InputError, match=sentence) as raised:
        front(head)
    assert str(raised.value).startswith("a.md:")
    assert time.monotonic() - begun < 10


def test_every_value_is_the_text_it_is() -> None:
    head = "id: 00123\ndate: 2026-05-31\nyes: no\nempty:\nlist: [NA, 1e5]\n"
    head += "tag: !!python/object:os.system rm\ncopy: &c [a]\nagain: *c"
    fields, text = front(head)
    assert fields == {
        "id": "00123", "date": "2026-05-31", "yes": "no", "empty": "", "list": ["NA", "1e5"], "tag": "rm", "copy": ["a"],
        "again": ["a"],
    }  # fmt: skip
    assert text == "the text"


@pytest.mark.parametrize("head", ["", "# only a comment"])
def test_front_matter_may_say_nothing(head: str) -> None:
    fields, _ = front(head)
    assert fields == {}


def test_a_text_between_two_rules_is_text() -> None:
    assert front("only words")[0] == {}
    assert front("only words")[1].startswith("---")
