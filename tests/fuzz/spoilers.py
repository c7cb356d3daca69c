"""Valid files made invalid, or strange: what a person, an editor, an export or an enemy does to them. Seeded, no I/O."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

Spoiler = Callable[[bytes, random.Random], bytes]

DEEP = {"@deep-150@": "[" * 150 + "]" * 150, "@deep-object@": '{"a":' * 3000 + "1" + "}" * 3000, "@deep-open@": "[" * 50_000}
"""Words that stand for what no writer of JSON would write."""
DATES = [
    "2026-13-45", "2026-02-30", "0000-00-00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2026-05-31T24:00",
    "2026-W01-1", "20260531", "2026-05-31T12:00:00.123456789Z", "٢٠٢٦-٠٥-٣١", "2026-05-31 ", "10000-01-01", "-1", "1e9", "now",
]  # fmt: skip
TEXTS = [
    "", " ", "\u200b", "\ufeff", "\ud800", "\x00", "a\nb", "a\u2028b", "a" * 100_000, "=1+1", "::error::x", "../../etc/passwd",
    "$gt", "_cards", "chroma:document", "#document", "é", "e\u0301", "👩\u200d💻", "NaN", "null", "true", "1",
    "00123", "c0::00",
]  # fmt: skip
NUMBERS = [0, -1, 1, 2**31, 2**53 + 1, 2**63, 10**400, 0.1, -0.0, 1e308, 5e-324, float("nan"), float("inf"), -float("inf")]
SHAPES: list[Any] = [
    None, True, False, [], {}, [[]], [None], {"": ""}, {"$gt": 1}, {"$and": []}, {"$or": [{"a": 1}]}, {"$in": []},
    {"language": {"$eq": "en", "$ne": "de"}}, {"valid_from": {"$lte": "soon"}}, [1, "a"], ["a", "a"], {"a": {"b": {"c": 1}}},
]  # fmt: skip
VALUES: list[Any] = [*DATES, *TEXTS, *NUMBERS, *SHAPES, *DEEP]
TOML_VALUES = [
    "nan", "-inf", "1e999", "9" * 5000, "0x" + "f" * 400, "''", '"\\u0000"', '"\\ud800"', "[]", "{}", "[[]]", "true", "-1", "0",
    "1.5", "1979-05-27", "2026-02-30", "07:32:00", "1979-05-27T07:32:00-99:99", "[" * 3000, "{a = " * 3000, '"""', "1_0", "0o7",
    "[1, 'a']", "{a.b.c = 1}", '"' + "a" * 100_000 + '"', "2026-05-31T00:00:00Z", "", "= =", "@@",
]  # fmt: skip
YAML_VALUES = [
    "&a [*a]", "*b", "!!python/object:os.system x", "!!binary abc", "!<tag> x", "[" * 3000, "{a: " * 2000, "|\n  a\n b",
    "- a\n- b", "? [x]", "'", '"\\x"', "\t", "2026-02-30", "~", "null", "1e999", "@x", "`x", "%YAML 9.9", "--- |", "...",
    ": :", "{a: b, a: c}", "\u200b", "a: b: c", "<<: *b", "&a &b c", "x" * 100_000, "",
]  # fmt: skip
BYTES = [
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\x00",
    b"\r",
    b"\x1a",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"}",
    b'"',
    b"\\",
    b",",
    b"\n",
]


def spoil_bytes(content: bytes, rng: random.Random) -> bytes:
    """Cut, insert, swap, re-encode: whatever the format."""
    at, other = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    lines = content.split(b"\n")
    line = rng.randrange(len(lines))
    ways = [
        lambda: content[:at], lambda: content[at:], lambda: content[:at] + content[other:],
        lambda: content[:at] + rng.choice(BYTES) + content[at:], lambda: content[:at] + content[at:other] * 2 + content[other:],
        lambda: b"\n".join([*lines[:line], lines[line], *lines[line:]]), lambda: b"\n".join(rng.sample(lines, len(lines))),
        lambda: b"\n".join(lines[:line] + lines[line + 1 :]), lambda: content.decode().encode("utf-16"),
        lambda: content + b"caf\xe9", lambda: b"", lambda: b"\n" * 50, lambda: b"\x00" * 100,
        lambda: b"\xef\xbb\xbf" * 2 + content, lambda: content.replace(b"\n", b"\r"), lambda: content + b" " * 100_000,
        lambda: content * 2,
        lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        lambda: content[:at] + b"\n<<<<<<< HEAD\n" + content[at:],
    ]  # fmt: skip
    return rng.choice(ways)()


def spoil_json_lines(content: bytes, rng: random.Random) -> bytes:
    """One value of one line."""
    lines = content.decode().splitlines()
    place = rng.randrange(len(lines))
    lines[place] = _spoiled(lines[place], rng)
    return "\n".join([*lines, ""]).encode()


def spoil_json(content: bytes, rng: random.Random) -> bytes:
    """One value of a document."""
    return _spoiled(content.decode(), rng).encode()


def spoil_toml(content: bytes, rng: random.Random) -> bytes:
    """One setting, or one more."""
    return _spoiled_lines(content, rng, " = ", TOML_VALUES).replace(b"@@", b"\x7f")


def spoil_front_matter(content: bytes, rng: random.Random) -> bytes:
    """One field of the front matter, or one more."""
    return _spoiled_lines(content, rng, ": ", YAML_VALUES)


def _spoiled_lines(content: bytes, rng: random.Random, joint: str, values: list[str]) -> bytes:
    lines, value = content.decode().split("\n"), rng.choice(values)
    places = [number for number, line in enumerate(lines) if joint in line]
    place = rng.choice(places)
    name = lines[place].partition(joint)[0]
    ways = [
        lambda: [*lines[:place], f"{name}{joint}{value}", *lines[place + 1 :]],
        lambda: [*lines[:place], lines[place], lines[place], *lines[place + 1 :]],
        lambda: [*lines[:place], f"{rng.choice(['unknown', 'a.b', 'name', 'text', 'metadata'])}{joint}{value}", *lines[place:]],
        lambda: lines[:place] + lines[place + 1 :],
    ]
    weighted = [ways[0]] * 5 + ways
    return "\n".join(rng.choice(weighted)()).encode()


def _spoiled(text: str, rng: random.Random) -> str:
    """One place of a JSON value replaced, removed, doubled or added."""
    whole = copy.deepcopy(json.loads(text))
    holder, name = rng.choice(list(_places(whole)) or [(None, None)])
    value = rng.choice(VALUES)
    if holder is None:
        whole = value
    elif rng.random() < 0.75:
        holder[name] = value
    elif rng.random() < 0.5:
        del holder[name]
    elif isinstance(holder, dict):
        holder[rng.choice(["", "unknown", "Text", "metadata", "id", "filter", "$gt"])] = value
    else:
        holder.append(value)
    written = json.dumps(whole, ensure_ascii=rng.random() < 0.5 or _is_lone(value))
    if rng.random() < 0.05:
        written = written.replace("{", '{"id": "twice", ', 1)
    for word, meant in DEEP.items():
        written = written.replace(f'"{word}"', meant)
    return written


def _is_lone(value: object) -> bool:
    return isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value)


def _places(value: Any) -> Any:
    """Every (container, key) of a JSON value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
