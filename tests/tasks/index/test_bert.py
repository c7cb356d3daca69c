"""The quick way gives what the model gives, and knows which models it does not know."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbgate.tasks.domain import Model
from kbgate.tasks.index.bert import Bert
from kbgate.tasks.index.embedding import embed_anew
from kbgate.tasks.index.models import identify_model
from kbgate.tasks.settings import Embedding, Suite

TEXTS = (
    "take it with food", "", "  twice\n a day ", "¿Con o sin comida? Ça dépend; 食後に飲む。 🙂", "word " * 400, "x" * 300,
    "AÉİ ß",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The default model by links, so that one file of it can be another."""
    model = identify_model(Suite(folder=tmp_path, name="x")).folder
    (tmp_path / "m" / "1_Pooling").mkdir(parents=True)
    for path in model.rglob("*"):
        if path.is_file():
            (tmp_path / "m" / path.relative_to(model)).symlink_to(path)
    return tmp_path / "m"


def change(path: Path, **settings: Any) -> None:
    content = {**json.loads(path.read_text()), **settings}
    path.unlink()
    path.write_text(json.dumps(content))


def model_of(folder: Path) -> Model:
    return identify_model(Suite(folder=folder.parent, name="x", embedding=Embedding(model="m")))


def test_it_gives_what_the_model_gives(folder: Path) -> None:
    vectors = Bert(folder).embed(TEXTS)
    given = embed_anew(model_of(folder), [("", text) for text in TEXTS], 32)
    assert vectors.dtype == given.dtype == np.float32
    assert np.linalg.norm(vectors - given, axis=1).max() < 1e-5


def test_it_pools_as_the_model_pools(folder: Path) -> None:
    mean = Bert(folder).embed(TEXTS[:1])
    change(folder / "1_Pooling" / "config.json", pooling_mode_cls_token=True, pooling_mode_mean_tokens=False)
    vectors = Bert(folder).embed(TEXTS[:3])
    given = embed_anew(model_of(folder), [("", text) for text in TEXTS[:3]], 32)
    assert np.linalg.norm(vectors - given, axis=1).max() < 1e-5
    assert np.linalg.norm(vectors[0] - mean[0]) > 0.1


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: change(folder / "config.json", model_type="mpnet"),
        lambda folder: change(folder / "config.json", hidden_act="relu"),
        lambda folder: change(folder / "config.json", position_embedding_type="relative_key"),
        lambda folder: change(folder / "config.json", is_decoder=True),
        lambda folder: change(folder / "1_Pooling" / "config.json", pooling_mode_cls_token=True),
        lambda folder: change(folder / "1_Pooling" / "config.json", pooling_mode_mean_tokens=False),
        lambda folder: change(
            folder / "1_Pooling" / "config.json", pooling_mode_mean_tokens=False, pooling_mode_max_tokens=True),
        lambda folder: change(folder / "1_Pooling" / "config.json", include_prompt=False),
        lambda folder: change(folder / "sentence_bert_config.json", do_lower_case=True),
        lambda folder: change(folder / "sentence_bert_config.json", max_seq_length=None),
        lambda folder: change(folder / "config_sentence_transformers.json", default_prompt_name="query"),
        lambda folder: (folder / "tokenizer.json").unlink(),
        lambda folder: (folder / "model.safetensors").unlink(),
        lambda folder: (folder / "modules.json").unlink(),
    ],
)  # fmt: skip
def test_a_model_of_another_kind_is_left_to_torch(folder: Path, spoil: Callable[[Path], None]) -> None:
    spoil(folder)
    with pytest.raises(Exception, match=r"."):  # of whatever kind: the caller asks the model itself
        Bert(folder)


def test_a_dense_layer_behind_the_pooling_is_left_to_torch(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").unlink()
    (folder / "modules.json").write_text(
        json.dumps([*modules[:2], {**modules[2], "type": "sentence_transformers.models.Dense"}])
    )
    with pytest.raises(ValueError, match="not of transformer, pooling and normalisation alone"):
        Bert(folder)
