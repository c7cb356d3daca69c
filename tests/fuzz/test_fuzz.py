"""Two thousand spoiled inputs: each is bad input (exit 2), or read and right; never an error of ours, never a hang."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.errors import InputError
from kbgate.tasks.records import digest
from kbgate.tasks.runs.document import VerdictDocument, read_document
from tests.conftest import write_lines
from tests.fuzz.spoilers import (
    Spoiler,
    spoil_bytes,
    spoil_front_matter,
    spoil_json,
    spoil_json_lines,
    spoil_toml,
)  # fmt: skip

CLI = Callable[..., int]
SLOWEST_S = 60.0
"""Of one input: longer than that is a hang."""
SETTINGS = """name = "fuzz"
top_k = 1
k_values = [1]
pass_mark = 0.9
as_of = 2026-06-01
[kb]
path = "cards.jsonl"
filterable = ["year"]
[retrieval]
method = "bm25"
[chunking]
size = 384
overlap = 64
[embedding]
text = "{title} {chunk}"
[gates]
contract = {tolerance = 0.02}
newly_failing = {ceiling = 0, slack = 1}
[[slice]]
by = "language"
metric = "contract"
tolerance = 0.1
[[allow]]
case = "q0"
check = "newly_failing"
reason = "known"
until = 2099-01-01
[acceptance]
quality = 0.5
"""
PAGE = """---
title: The vpn
tier: gold
topics: [net, work]
valid_from: 2026-01-01
language: en
---
# The vpn

How it is reached.
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two suites of words with baselines, of a file and of a folder, and a run's verdict."""
    from kbgate.flows import evaluate
    from kbgate.tasks.baseline.files import write_baseline

    root = tmp_path_factory.mktemp("fuzz")
    words = ("vpn", "leave", "badge", "printer")
    more = {"language": "en", "topics": ["t"], "valid_from": "2026-01-01", "metadata": {"year": 2024}, "description": "d"}
    for name in ("lines", "pages"):
        (root / name).mkdir()
        (root / name / "suite.toml").write_text(SETTINGS)
        gold = [{"id": f"q{n}", "query": word, "language": "en", "must_cite_one_of": [word]} for n, word in enumerate(words)]
        gold[1] |= {"filter": {"year": {"$gte": 2000}}, "entitled": {"language": "en"}} if name == "lines" else {}
        write_lines(root / name / "golden.jsonl", gold)
    write_lines(root / "lines" / "cards.jsonl", [{"id": word, "text": f"All of the {word}", **more} for word in words])
    (root / "pages" / "kb").mkdir()
    (root / "pages" / "suite.toml").write_text(SETTINGS.replace("cards.jsonl", "kb"))
    for word in words:
        (root / "pages" / "kb" / f"{word}.md").write_text(PAGE.replace("vpn", word))
    for name in ("lines", "pages"):
        run = evaluate.run(str(root / name), home=str(root / "home"))
        write_baseline(run, "first", accept_regression=False)
    shutil.copy(run.folder / "verdict.json", root / "verdict.json")
    return root


def sealed_again(folder: Path) -> None:
    """Let the digests of a baseline fit what its files now hold, so that what they say is read, and not their seal alone."""
    try:
        summary = json.loads((folder / "baseline.json").read_text())
        rows = {
            part: [json.loads(line) for line in (folder / f"baseline.{part}.jsonl").read_text().split("\n") if line]
            for part in ("cases", "cards")
        }
        digests = {part: digest(sorted(rows[part], key=lambda row: str(row["id"]))) for part in rows}
        digests["summary"] = digest({name: value for name, value in summary.items() if name != "digests"})
        (folder / "baseline.json").write_text(json.dumps({**summary, "digests": digests}))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass  # not even this can be read


KINDS: list[tuple[str, str, Spoiler, int]] = [
    ("lines", "cards.jsonl", spoil_json_lines, 400), ("lines", "golden.jsonl", spoil_json_lines, 400),
    ("lines", "suite.toml", spoil_toml, 300), ("pages", "kb/vpn.md", spoil_front_matter, 250),
    ("lines", "baseline.json", spoil_json, 100), ("lines", "baseline.cases.jsonl", spoil_json_lines, 100),
    ("lines", "baseline.cards.jsonl", spoil_json_lines, 50),
    *[("lines", file, spoil_bytes, 50) for file in ("cards.jsonl", "golden.jsonl", "suite.toml", "baseline.json")],
    ("pages", "kb/vpn.md", spoil_bytes, 50),
]  # fmt: skip
VERDICTS = 150


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "file", "spoil", "count"), KINDS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_spoiled_file_is_bad_input_or_read(
    whole: Path, suite: str, file: str, spoil: Spoiler, count: int, kbgate: CLI, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("KBGATE_HOME", str(tmp_path / "home"))
    folder = Path(shutil.copytree(whole / suite, tmp_path / suite))
    rng, content, codes = random.Random(f"{file} {spoil.__name__}"), (folder / file).read_bytes(), Counter[int]()
    first = (folder / "baseline.json").read_bytes()
    for number in range(count):
        (folder / "baseline.json").write_bytes(first)
        spoiled = spoil(content, rng)
        (folder / file).write_bytes(spoiled)
        if file.startswith("baseline") and number % 2:
            sealed_again(folder)
        begun = time.monotonic()
        code = kbgate("check", folder)
        if code == 0 and number % 8 == 0:
            # What check lets through must be measured, whatever the verdict.
            code = {0: 0, 1: 0, 3: 0}.get(evaluated := kbgate("evaluate", folder), evaluated)
        took, said = time.monotonic() - begun, capsys.readouterr()
        assert code in (0, 2), f"{number}: {code}: {spoiled[:600]!r}\n{said.err[-600:]}"
        assert "Traceback" not in said.err
        assert took < SLOWEST_S, f"{number}: {took:.1f} s: {spoiled[:300]!r}"
        codes[code] += 1
    assert codes[2] > count / 10, codes


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [spoil_json, spoil_bytes])
def test_a_spoiled_verdict_is_none_or_says_what_its_file_says(whole: Path, spoil: Spoiler, tmp_path: Path) -> None:
    rng, content = random.Random(spoil.__name__), (whole / "verdict.json").read_bytes()
    read = 0
    for _ in range(VERDICTS):
        (tmp_path / "verdict.json").write_bytes(spoiled := spoil(content, rng))
        try:
            document = read_document(tmp_path / "verdict.json")
        except InputError:
            continue
        read += 1
        assert VerdictDocument.of(document.plain()) == document, spoiled[:600]
    assert read < VERDICTS


HARMLESS: dict[str, Callable[[Any], bytes]] = {
    "a mark at its beginning": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "line ends of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "lines apart": lambda text: text.replace("\n", "\n\n").encode(),
    "no last line end": lambda text: text.rstrip("\n").encode(),
}


@pytest.mark.slow
@pytest.mark.parametrize("file", ["cards.jsonl", "golden.jsonl", "baseline.cases.jsonl", "baseline.json", "suite.toml"])
@pytest.mark.parametrize("how", HARMLESS)
def test_what_changes_no_meaning_changes_nothing(whole: Path, how: str, file: str, kbgate: CLI, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole / "lines", tmp_path / "lines"))
    (folder / file).write_bytes(HARMLESS[how]((folder / file).read_text()))
    assert kbgate("check", folder) == 0
    assert kbgate("evaluate", folder) == 0


def test_spoilers_spoil_as_they_did() -> None:
    """Seeded: what failed once can be had again."""
    once, again = (spoil_json(b'{"a": [1, {"b": 2}]}', random.Random(7)) for _ in range(2))
    assert once == again
