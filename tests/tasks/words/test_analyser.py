"""A function that was brought finds the words of cards and questions, everywhere, or nothing is measured."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kbgate.tasks.diagnosis.lexicon import analyse
from kbgate.tasks.domain import Index, Outcome, Question
from kbgate.tasks.errors import InputError, Unmeasured
from kbgate.tasks.index.fingerprint import changed_pipeline, index_fingerprint, pipeline_of, settings_fingerprint
from kbgate.tasks.retrieval import RETRIEVERS, versions_of
from kbgate.tasks.settings import IndexSettings, Retrieval, Suite
from kbgate.tasks.tables import Rows
from kbgate.tasks.words import analyser
from kbgate.tasks.words.analyser import OURS, analyser_of
from tests.conftest import edit_text, write_suite

TEXTS = {"a": "red-fox", "b": "blue-whale"}
ROWS = Rows(("a", "b"), tuple(TEXTS.values()), ("xx", "xx"), ({}, {}), (("a::00",), ("b::00",)), (("a",), ("b",)))


@pytest.fixture
def bring(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., object]], Suite]:
    """Make a function an installed module's, and the suite that names it."""
    analyser._brought.cache_clear()

    def bring(function: Callable[..., object]) -> Suite:
        brought = ModuleType("somebody")
        brought.words, brought.__version__ = function, "1.2"  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "somebody", brought)
        settings: dict[str, Any] = {"index": IndexSettings(analyser="somebody:words"), "retrieval": Retrieval(method="bm25")}
        return Suite(folder=Path(), name="x", top_k=1, k_values=(1,), **settings)

    return bring


def halves(text: str, language: str) -> list[str]:
    assert language == "xx"
    return text.split("-")


def test_the_lane_and_its_diagnosis_count_the_words_it_finds(bring: Callable[..., Suite]) -> None:
    suite = bring(halves)
    (answer,) = RETRIEVERS["bm25"].connect(Index(ROWS, None), suite)([Question("big-whale", "xx", {})], 1)  # type: ignore[arg-type]
    assert answer.lanes["bm25"].ids == ("b",)
    assert analyse(ROWS, analyser_of(suite)).counts("whale").tolist() == [0.0, 1.0]


def test_a_verdict_is_bound_to_it_and_to_its_version(bring: Callable[..., Suite], monkeypatch: pytest.MonkeyPatch) -> None:
    suite, ours = bring(halves), Suite(folder=Path(), name="x", retrieval=Retrieval(method="bm25"))
    versions = versions_of(suite, ROWS)
    assert versions["words"] == "somebody:words 1.2"
    assert "words" not in versions_of(ours, ROWS)
    prints = {index_fingerprint(each, ROWS, None, versions_of(each, ROWS)) for each in (suite, ours)}
    prints.add(index_fingerprint(suite, ROWS, None, {**versions, "words": "somebody:words 1.3"}))
    assert len(prints) == 3
    assert settings_fingerprint(suite, None, versions) != settings_fingerprint(ours, None, versions)
    assert changed_pipeline(pipeline_of(ours), pipeline_of(suite)) == {"index.analyser": (None, "somebody:words")}
    assert changed_pipeline(pipeline_of(suite), pipeline_of(ours)) == {"index.analyser": ("somebody:words", None)}


def test_the_version_of_a_file_is_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_words.py").write_text("def words(text, language):\n    return text.split()\n")
    monkeypatch.syspath_prepend(tmp_path)
    suite = Suite(folder=Path(), name="x", index=IndexSettings(analyser="mine_words:words"))
    first = analyser_of(suite).versions(ROWS)
    (tmp_path / "mine_words.py").write_text("def words(text, language):\n    return [text]\n")
    analyser._brought.cache_clear()
    assert analyser_of(suite).versions(ROWS) != first


def fails(text: str, language: str) -> list[str]:
    raise OSError("dictionary is gone")


def changing() -> Callable[[str, str], list[str]]:
    seen: list[str] = []

    def words(text: str, language: str) -> list[str]:
        seen.append(text)
        return [*text.split("-"), f"w{len(seen)}"]

    return words


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (fails, "raised OSError: dictionary is gone"),
        (lambda text, language: None, "returned NoneType"),
        (lambda text, language: text, "returned str"),
        (lambda text, language: (word for word in text), "returned generator"),
        (lambda text, language: [float("nan")], "returned nan, which is not a word"),
        (lambda text, language: ["two\nlines"], "is not a word"),
        (lambda text, language: ["a", ""], "is not a word"),
        (lambda text, language: [], "found no word in any of 2 rows"),
        (lambda text: ["a"], "raised TypeError"),
        (changing(), "finds other words when it reads the same text again"),
    ],
)
def test_what_does_not_find_words_is_not_measured(
    bring: Callable[..., Suite], function: Callable[..., object], sentence: str
) -> None:
    with pytest.raises(Unmeasured, match=sentence):
        RETRIEVERS["bm25"].connect(Index(ROWS, None), bring(function))  # type: ignore[arg-type]


def test_one_that_fails_on_a_question_fails_that_question(bring: Callable[..., Suite]) -> None:
    suite = bring(lambda text, language: text.split("-") if "?" not in text else fails(text, language))
    asked = [Question("red?", "xx", {}), Question("red", "xx", {})]  # type: ignore[arg-type]
    answers = RETRIEVERS["bm25"].connect(Index(ROWS, None), suite)(asked, 1)  # type: ignore[arg-type]
    assert [answer.outcome for answer in answers] == [Outcome.RAISED, Outcome.ANSWERED]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("kbgate_no_such:words", "cannot be imported .ModuleNotFoundError"),
        ("json:no_such", "cannot be imported .AttributeError"),
        ("json:__name__", "is of type str"),
    ],
)
def test_a_name_that_is_no_function_is_a_mistake(name: str, sentence: str) -> None:
    with pytest.raises(InputError, match=f"suite.toml: index.analyser: '{name}' {sentence}"):
        analyser_of(Suite(folder=Path(), name="x", index=IndexSettings(analyser=name)))


def test_without_one_it_is_ours() -> None:
    assert analyser_of(Suite(folder=Path(), name="x")) is OURS


def test_check_refuses_a_name_and_names_languages_without_rules(
    tmp_path: Path, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    suite = write_suite(tmp_path / "faq", "bm25", TEXTS)
    for file in ("cards.jsonl", "golden.jsonl"):
        edit_text(suite / file, '{"id"', '{"language": "sw", "id"')
    assert kbgate("check", str(suite)) == 0
    assert "no rules for the words of sw (2 cards, 2 cases): bm25 reads them as English" in capsys.readouterr().out
    with (suite / "suite.toml").open("a") as file:
        file.write('\n[index]\nanalyser = "kbgate_no_such:words"\n')
    assert kbgate("check", str(suite)) == 2
    assert "index.analyser: 'kbgate_no_such:words' cannot be imported" in capsys.readouterr().err
