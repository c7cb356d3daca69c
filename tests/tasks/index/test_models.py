"""A model is known by the content of its files, wherever links say that they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kbgate.tasks.errors import InputError
from kbgate.tasks.index import models
from kbgate.tasks.index.models import identify_model
from kbgate.tasks.settings import Embedding, Suite


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in the form of a model, without one byte of weights."""
    (tmp_path / "m" / "1_Pooling").mkdir(parents=True)
    (tmp_path / "m" / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "m" / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    return tmp_path / "m"


def weights(folder: Path) -> str:
    return identify_model(Suite(folder=folder.parent, name="x", embedding=Embedding(model=folder.name))).weights


def test_a_link_to_a_file_is_what_it_leads_to(folder: Path) -> None:
    plain = weights(folder)
    (folder / "model.safetensors").rename(folder.parent / "blob")
    (folder / "model.safetensors").symlink_to(folder.parent / "blob")
    assert weights(folder) == plain
    (folder.parent / "blob").write_bytes(b"other weights")
    assert weights(folder) != plain


def test_a_link_to_a_folder_is_what_it_leads_to(folder: Path) -> None:
    """How the vectors are pooled stands in a folder: behind a link it was in no hash."""
    plain, pooling = weights(folder), folder.parent / "pooling"
    shutil.move(folder / "1_Pooling", pooling)
    (folder / "1_Pooling").symlink_to(pooling, target_is_directory=True)
    assert weights(folder) == plain
    (pooling / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    assert weights(folder) != plain


def test_a_model_that_is_a_link_itself_is_the_model(folder: Path) -> None:
    (folder.parent / "linked").symlink_to(folder, target_is_directory=True)
    assert weights(folder.parent / "linked") == weights(folder)


@pytest.mark.parametrize(
    ("name", "target", "sentence"),
    [
        ("tokenizer.json", "nowhere", r"tokenizer\.json is a link that leads nowhere"),
        ("2_Normalize", "nowhere", "2_Normalize is a link that leads nowhere"),
        ("itself", "itself", "itself is a link that leads nowhere"),
        ("again", ".", "again is a link to a folder it stands in; remove the link"),
        ("1_Pooling/up", "..", "is a link to a folder it stands in"),
    ],
)
def test_a_link_that_cannot_be_followed_to_its_end_is_refused(folder: Path, name: str, target: str, sentence: str) -> None:
    (folder / name).symlink_to(target)
    with pytest.raises(InputError, match=sentence):
        weights(folder)


def test_what_shapes_no_vector_may_lead_nowhere(folder: Path) -> None:
    plain = weights(folder)
    for name in ("README.md", ".cache"):
        (folder / name).symlink_to("nowhere")
    assert weights(folder) == plain


def test_links_that_multiply_without_end_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_MOST_FILES", 100)
    for n in range(7):
        (folder.parent / f"d{n}").mkdir()
        for side in "ab":
            (folder.parent / f"d{n}" / side).symlink_to(folder / "1_Pooling" if n == 6 else folder.parent / f"d{n + 1}")
    (folder / "many").symlink_to(folder.parent / "d0")
    with pytest.raises(InputError, match="holds more than 100 files"):
        weights(folder)
