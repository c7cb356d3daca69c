"""The ingest report finds what was put there, and nothing in a clean knowledge base."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MEDICATION, edit_text, write_lines

CLI = Callable[..., int]
PLAIN = "The ferry leaves the harbour at eight in the morning and returns at six in the evening, except on Sundays in winter. "
TWIN = (
    "The cabin has two beds, a lamp and a small table by the window; blankets are in the chest, and towels cost three crowns "
    "at the desk. "
)
GERMAN = (
    "Die Fähre verlässt den Hafen um acht Uhr morgens und kehrt um sechs Uhr abends zurück, außer an Sonntagen im Winter. " * 2
)
TABLE = "| from | to | price |\n|---|---|---|\n" + "\n".join(
    f"| port {n} | island {n} | {n * 10} crowns a person |" for n in range(20)
)
LIST = "\n".join(f"- item number {n} of a rather long list of things to bring along on the ferry" for n in range(10))


def report(kbgate: CLI, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    assert kbgate("inspect", folder, "--json") == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "suite.toml").write_text(
        'name = "ferry"\nas_of = 2026-06-01\n[kb]\non_bad_card = "reject"\n[chunking]\nsize = 400\noverlap = 0\n'
    )
    foot = "\n\nAll information is given without warranty of any kind."
    cards = [
        {"id": "plain", "text": PLAIN, "language": "en", "source_url": "https://ferry.example/plain"},
        {"id": "table", "text": TABLE, "source_url": "nowhere"},
        {"id": "list", "text": LIST},
        {"id": "figure", "text": "![map](map.png) The route."},
        {"id": "old", "text": "Fares of last year.", "valid_until": "2025-12-31"},
        {"id": "early", "text": "Fares of next year.", "valid_from": "2027-01-01"},
        {"id": "twin-a", "text": TWIN + "Bring your own cup."},
        {"id": "twin-b", "text": TWIN + "Bring your own cup!"},
        {"id": "hidden", "text": "The cap\u200btain's table."},
        {"id": "wrong", "text": GERMAN, "language": "en"},
        {"id": "bad", "text": "x", "valid_from": "soon"},
        *({"id": f"foot-{n}", "text": f"Cabin {n} has {n + 1} beds.{foot}"} for n in range(6)),
    ]
    write_lines(tmp_path / "cards.jsonl", cards)
    write_lines(tmp_path / "golden.jsonl", [{"id": "a", "query": "When does the ferry leave?", "expected": ["plain"]}])
    return tmp_path


def test_what_was_put_there_is_found(folder: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    observed = report(kbgate, folder, capsys)
    assert "cards.jsonl:11" in observed["rejected"]["cards"][0]
    assert observed["tables"]["cards"] == ["table"]
    assert observed["lists"]["cards"] == ["list"]
    assert observed["descriptions"]["cards"] == ["figure", "table"]
    assert observed["expired"]["cards"] == ["old"]
    assert observed["not yet valid"]["cards"] == ["early"]
    assert observed["near-duplicates"]["cards"] == ["twin-a and twin-b"]
    assert observed["repeated lines"]["cards"] == ["'All information is given without warranty of any kind.' on 6 cards"]
    assert observed["invisible characters"]["cards"] == ["hidden"]
    assert observed["languages"]["cards"] == ["wrong (en, reads like de)"]
    assert observed["input limit"]["cards"] == []
    assert "(none was fetched)" in observed["sources"]["sentence"]
    assert "1 of " in observed["sources"]["sentence"]
    assert "chunks of 16 cards" in observed["chunks"]["sentence"]


def test_what_the_model_does_not_read_is_counted(folder: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    edit_text(folder / "suite.toml", "[chunking]\nsize = 400\noverlap = 0\n", '[chunking]\nmethod = "whole"\n')
    observed = report(kbgate, folder, capsys)["input limit"]
    assert observed["cards"] == ["table"]
    assert "256 tokens" in observed["sentence"]


def test_questions_that_the_model_does_not_read_to_their_end(
    folder: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    """By inspect and by check, which loads no model for it; where there is none, check says that it did not count."""
    assert (
        report(kbgate, folder, capsys)["questions"]["sentence"]
        == "the model reads every question whole (its limit is 256 tokens)"
    )
    cases = [{"id": "b", "query": PLAIN * 20, "expected": ["plain"]}, {"id": "c", "query": "When?", "expected": ["plain"]}]
    write_lines(folder / "golden.jsonl", cases)
    told = "1 question longer than the 256 tokens the model reads, and not asked to the end: b"
    assert report(kbgate, folder, capsys)["questions"]["sentence"] == told
    assert kbgate("check", folder) == 0
    assert told in capsys.readouterr().out
    edit_text(folder / "suite.toml", "[chunking]", '[embedding]\nmodel = "nowhere"\n[chunking]')
    assert kbgate("check", folder) == 0
    assert "questions longer than the model reads were not counted: suite.toml: embedding.model: " in capsys.readouterr().out
    edit_text(folder / "suite.toml", "[chunking]", '[retrieval]\nmethod = "bm25"\n[chunking]')
    assert kbgate("check", folder) == 0
    assert "questions longer" not in capsys.readouterr().out


def test_files_that_are_not_in_normal_form(folder: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    """kbgate reads them so; the line is told, written out or escaped, for whoever else reads the files."""
    assert report(kbgate, folder, capsys)["normal form"]["cards"] == []
    with (folder / "cards.jsonl").open("a", encoding="utf-8") as file:
        file.write(
            '{"id": "loose", "text": "cafe\u0301"}\n{"id": "escaped", "text": "cafe\\u0301"}\n{"id": "good", "text": "café"}\n'
        )
    assert report(kbgate, folder, capsys)["normal form"]["cards"] == ["cards.jsonl:18", "cards.jsonl:19"]


def test_the_bundled_suite_is_clean(kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    observed = report(kbgate, MEDICATION, capsys)
    for name in (
        "rejected",
        "input limit",
        "descriptions",
        "near-duplicates",
        "repeated lines",
        "invisible characters",
        "languages",
    ):
        assert observed[name]["cards"] == [], name
    assert kbgate("inspect", MEDICATION) == 0
    assert "no card has invisible characters" in capsys.readouterr().out


CHINESE = (
    "渡轮每天早上八点离开港口，晚上六点返回，冬季星期日除外。船舱有两张床、一盏灯和窗边的小桌；毯子在柜子里，毛巾在前台购买需要三克朗。"
    "车票可以在网上预订，也可以在码头的售票处购买。带自行车的乘客应提前半小时到达，狗必须系好牵引绳，儿童半价。"
)
THAI = (
    "เรือออกจากท่าเวลาแปดโมงเช้าและกลับมาเวลาหกโมงเย็นทุกวันยกเว้นวันอาทิตย์ในฤดูหนาว ห้องโดยสารมีเตียงสองเตียงและโต๊ะเล็กข้างหน้าต่าง "
    "ผ้าห่มอยู่ในตู้ ซื้อตั๋วได้ที่ท่าเรือหรือทางออนไลน์ ผู้โดยสารที่มีจักรยานควรมาถึงก่อนเวลาครึ่งชั่วโมง เด็กจ่ายครึ่งราคา"
)


@pytest.mark.parametrize(
    ("language", "text", "end", "other_end"),
    [("zh", CHINESE, "八点", "九点"), ("th", THAI, "แปดโมง", "เก้าโมง"), ("en", PLAIN + TWIN, "Eight.", "nine")],
)
def test_near_duplicates_are_told_in_scripts_without_blanks(
    language: str, text: str, end: str, other_end: str, tmp_path: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "suite.toml").write_text('name = "ferry"\nas_of = 2026-06-01\n[retrieval]\nmethod = "bm25"\n')
    texts = {"one": text + end, "other": text + other_end, "unlike": GERMAN}
    write_lines(tmp_path / "cards.jsonl", [{"id": name, "text": words, "language": language} for name, words in texts.items()])
    write_lines(tmp_path / "golden.jsonl", [{"id": "a", "query": end, "expected": ["one"]}])
    assert report(kbgate, tmp_path, capsys)["near-duplicates"]["cards"] == ["one and other"]
