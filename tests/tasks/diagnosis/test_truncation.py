"""What a model reads is said by two of its files; one that cannot be read is told, wherever it is asked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbgate.tasks.diagnosis.truncation import cut_off
from kbgate.tasks.domain import Model
from kbgate.tasks.errors import InputError
from kbgate.tasks.index.models import identify_model
from kbgate.tasks.settings import Suite
from tests.conftest import write_lines


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The default model in a folder of its own."""
    return Path(shutil.copytree(identify_model(Suite(folder=tmp_path, name="any")).folder, tmp_path / "model"))


TOKENIZER, SETTINGS = "tokenizer.json", "sentence_bert_config.json"
BROKEN = [
    (TOKENIZER, "{", "is not a tokenizer"),
    (TOKENIZER, "version https://git-lfs.github.com/spec/v1\n", "is not a tokenizer"),
    (SETTINGS, "{", "does not say how much the model reads"),
    (SETTINGS, "[]", "does not say how much the model reads"),
    (SETTINGS, '{"max_seq_length": "many"}', "does not say how much the model reads"),
    (SETTINGS, '{"max_seq_length": [256]}', "does not say how much the model reads"),
    (SETTINGS, '{"max_seq_length": -1}', "needs 3 or more, found -1"),
]


@pytest.mark.parametrize(("name", "text", "told"), BROKEN)
def test_a_broken_file_of_a_model_is_told(name: str, text: str, told: str, model: Path) -> None:
    (model / name).write_text(text)
    with pytest.raises(InputError, match=f"{name}: .*{told}"):
        cut_off(Model("own", "0" * 64, model), "", ["a question"])


def test_a_question_of_just_the_limit_is_read_whole(model: Path) -> None:
    """Three tokens: one between the marks."""
    (model / SETTINGS).write_text('{"max_seq_length": 3}')
    assert cut_off(Model("own", "0" * 64, model), "", ["yes", "yes no"]) == (3, ["", "no"])


@pytest.mark.parametrize(("name", "text"), [BROKEN[0][:2], BROKEN[2][:2]])
def test_check_says_that_it_did_not_count(
    name: str, text: str, model: Path, tmp_path: Path, kbgate: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    (model / name).write_text(text)
    (tmp_path / "suite.toml").write_text('name = "x"\n[embedding]\nmodel = "model"\n')
    write_lines(tmp_path / "cards.jsonl", [{"id": "c", "text": "c"}])
    write_lines(tmp_path / "golden.jsonl", [{"id": "a", "query": "a?", "expected": ["c"]}])
    assert kbgate("check", tmp_path) == 0
    assert f"questions longer than the model reads were not counted: {model / name}: " in capsys.readouterr().out
