"""A cache that says other than the model is found, whichever of its vectors they are; one that says the same is believed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kbgate.tasks.domain import Case, Material, Model, Sample
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.index import confirmation, process
from kbgate.tasks.index.confirmation import FAR, GOLDS, begun, confirm
from kbgate.tasks.index.embedding import cache_of, embed_queries, embed_rows
from kbgate.tasks.index.models import identify_model
from kbgate.tasks.index.vectors import key_of
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Rows, Vectors

TEXTS = ("take it with food", "never with alcohol", "twice a day", "not while driving", "keep it in the fridge")
CASES = {f"q{n}": Case(f"q{n}", text.replace("it", "the tablet") + "?", grades={f"c{n}": 1}) for n, text in enumerate(TEXTS)}


def rows_of(texts: Sequence[str]) -> Rows:
    count, cards = len(texts), tuple((f"c{n}",) for n in range(len(texts)))
    return Rows(tuple(map(str, range(count))), tuple(texts), ("",) * count, ({},) * count, cards, cards)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(folder=tmp_path, name="x")


@pytest.fixture(scope="module")
def model() -> Model:
    return identify_model(Suite(folder=Path(), name="x"))


def material(suite: Suite, model: Model | None, cache: Path, sample: Sample = Sample.EACH_RUN) -> Material:
    """What an exam has, from the cache where that holds it."""
    rows = rows_of(TEXTS)
    asked = dict(zip(CASES, embed_queries(suite, model, CASES, cache), strict=True))
    return Material(rows, embed_rows(suite, model, rows, cache), model, len(rows), "", "", sample, asked)


def overwrite(model: Model, cache: Path, texts: Sequence[str], vectors: Vectors) -> None:
    """What whoever can write the cache can do: other vectors under the same keys, with a digest that fits."""
    of_model = cache_of(model, cache)
    for file in of_model.folder.glob("*.arrow"):
        file.unlink()
    of_model.write([key_of("", text) for text in texts], vectors)


def look_again(suite: Suite, given: Material, cache: Path, seed: str = "run") -> None:
    with begun(suite, given, CASES, seed, cache) as look:
        confirm(look)


@pytest.mark.parametrize("which", ["rows", "questions"])
@pytest.mark.parametrize("sample", [Sample.EACH_RUN, Sample.ALL])
def test_swapped_vectors_are_no_measurement(which: str, sample: Sample, suite: Suite, model: Model, tmp_path: Path) -> None:
    cache = tmp_path / "vectors"
    first = material(suite, model, cache)
    look_again(suite, first, cache)
    questions = [case.query for case in CASES.values()]
    vectors = np.concatenate([first.vectors, np.stack(list(first.questions.values()))])
    order = np.arange(10)
    places = slice(0, 5) if which == "rows" else slice(5, 10)
    order[places] = np.roll(order[places], 1)
    overwrite(model, cache, [*TEXTS, *questions], vectors[order])
    second = material(suite, model, cache, sample)
    assert not np.array_equal(second.vectors, first.vectors) or which == "questions"
    with pytest.raises(Unmeasured) as refused:
        look_again(suite, second, cache)
    said = str(refused.value)
    assert f"the vector cache {cache_of(model, cache).folder} is not what sentence-transformers/all-MiniLM-L6-v2 gives" in said
    assert "of 10 texts embedded again 5 differ" in said
    assert ("card 'c" in said, "question 'q" in said) == (which == "rows", which == "questions")
    assert f"next: rm -r {cache_of(model, cache).folder}, and the same command again" in said
    assert refused.value.exit_code == 4
    shutil.rmtree(cache_of(model, cache).folder)
    look_again(suite, material(suite, model, cache), cache)


@pytest.mark.parametrize("how", ["NaN", "another length", "one number", "nothing"])
def test_whatever_else_an_exam_has_is_no_measurement(how: str, suite: Suite, model: Model, tmp_path: Path) -> None:
    given = material(suite, model, tmp_path)
    vectors = given.vectors.copy()
    if how == "NaN":
        vectors[2, 5] = np.nan
    elif how == "another length":
        vectors = vectors[:, :100]
    elif how == "one number":
        vectors[2, 5] += 10 * FAR["float32"]
    else:
        vectors = np.zeros_like(vectors)
    with pytest.raises(Unmeasured, match="is not what"):
        look_again(suite, replace(given, vectors=vectors), tmp_path)


def test_what_shares_a_batch_is_no_difference(suite: Suite, model: Model, tmp_path: Path) -> None:
    alone = suite.model_copy(update={"embedding": suite.embedding.model_copy(update={"batch": 1})})
    other = material(alone, model, tmp_path / "alone")
    texts = [(f"{n} " * n, text) for n, text in enumerate(TEXTS)]
    assert confirmation.embed_anew(model, texts, 32).shape == (5, 384)
    given = material(suite, model, tmp_path / "together")
    assert np.linalg.norm(other.vectors - given.vectors, axis=1).max() < FAR["float32"] / 10
    look_again(suite, replace(given, vectors=other.vectors), tmp_path)


def test_without_vectors_there_is_nothing_to_look_at(suite: Suite, tmp_path: Path) -> None:
    with begun(suite, material(suite, None, tmp_path), CASES, "run", tmp_path) as look:
        assert look is None
        confirm(look)


# ------------------------------------------------------------------ the sample


def large(sample: Sample) -> Material:
    rows = rows_of([str(n) for n in range(3000)])
    asked = {f"q{n}": np.zeros(2, np.float32) for n in range(2000)}
    return Material(rows, np.zeros((3000, 2), np.float32), None, 3000, "", "", sample, asked)


def test_each_run_draws_its_own_sample_golds_among_it() -> None:
    cases = {f"q{n}": Case(f"q{n}", "?", grades={f"c{n}": 1}) for n in range(20)}
    draws = [confirmation._drawn(large(Sample.EACH_RUN), cases, confirmation.Random(f"run {n}")) for n in range(50)]
    assert {(len(set(rows)), len(set(questions))) for rows, questions in draws} == {(16, 16)}
    assert all(sum(place < 20 for place in rows) >= GOLDS for rows, _ in draws)
    assert len({place for rows, _ in draws for place in rows if place >= 20}) > 300
    assert len({tuple(rows) for rows, _ in draws}) == 50
    again = confirmation._drawn(large(Sample.EACH_RUN), cases, confirmation.Random("run 0"))
    assert again == draws[0]


def test_at_promotion_one_wrong_in_a_hundred_is_found_with_99_percent() -> None:
    rows, questions = confirmation._drawn(large(Sample.AT_PROMOTION), CASES, confirmation.Random("run"))
    assert (len(set(rows)), len(set(questions))) == (467, 467)
    assert 0.99 ** (Sample.AT_PROMOTION - GOLDS) < 0.01


def test_all_is_all() -> None:
    rows, questions = confirmation._drawn(large(Sample.ALL), CASES, confirmation.Random("run"))
    assert (len(set(rows)), len(set(questions))) == (3000, 2000)


# ------------------------------------------------------------------ the process beside


def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """What is started in place of the process: a program of ours in its place on the disk."""
    program = tmp_path / "program"
    program.write_text(f"#!{sys.executable}\n{code}\n")
    program.chmod(0o700)
    monkeypatch.setattr(process.sys, "executable", str(program))


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("import sys; sys.exit('no memory')", r"ended with 1 \(no memory\); run it again"),
        ("import os; os.kill(os.getpid(), 9)", "ended with -9"),
        ("print('hello')", "gave no vectors"),
        ("", "gave no vectors"),
        ("import time; time.sleep(60)", "gave nothing within 0.2 s"),
    ],
)
def test_a_process_that_gives_no_vectors_is_no_measurement(
    code: str, sentence: str, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python(tmp_path, monkeypatch, code)
    monkeypatch.setattr(process, "LIMIT_S", 0.2 if "sleep" in code else 60)
    with process.beside(model, [("", "x")], 32) as answer:
        assert answer is not None
        with pytest.raises(Unmeasured, match=sentence):
            answer()


def test_a_process_is_given_no_key_and_nothing_of_the_current_folder(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KBGATE_KEY", "correct horse")
    python(tmp_path, monkeypatch, "import os, sys; sys.exit(f'{sorted(os.environ)} {sys.argv[1:]}')")
    with process.beside(model, [("", "x")], 32) as answer:
        assert answer is not None
        with pytest.raises(Unmeasured) as said:
            answer()
    assert "'PATH'" in str(said.value)
    assert "KBGATE_KEY" not in str(said.value)
    assert "['-P', '-m', 'kbgate.tasks.index.process']" in str(said.value)
    assert os.environ["KBGATE_KEY"] == "correct horse"


def test_where_no_process_can_be_started_the_model_is_asked_here(
    suite: Suite, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = material(suite, model, tmp_path)
    monkeypatch.setattr(process.sys, "executable", str(tmp_path / "nowhere"))
    monkeypatch.setattr(confirmation, "remembers", lambda *given: False)
    monkeypatch.delitem(sys.modules, "sentence_transformers", raising=False)
    monkeypatch.setattr(confirmation, "_asked_beside", set())
    look_again(suite, given, tmp_path)


def test_the_model_itself_has_the_last_word(suite: Suite, model: Model, tmp_path: Path) -> None:
    """What is asked beside the exam may compute in another way: it confirms, and it accuses nobody."""
    given = material(suite, model, tmp_path)
    with begun(suite, given, CASES, "run", tmp_path) as look:
        assert look is not None
        nonsense = np.roll(np.stack(look.vectors), 1, axis=0)
        confirm(replace(look, anew=lambda: (nonsense, "float32")))
        swapped = replace(look, vectors=tuple(np.roll(nonsense, 1, axis=0)))
        with pytest.raises(Unmeasured, match="of 10 texts embedded again 10 differ"):
            confirm(swapped)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 13])
def test_the_process_gives_what_the_model_gives_here(times: int, suite: Suite, model: Model, tmp_path: Path) -> None:
    """Few texts without torch, many with it."""
    given = material(suite, model, tmp_path)
    texts = [("", text) for text in TEXTS] * times
    assert (len(texts) > process._FEW) == (times > 1)
    with process.beside(model, texts, 32) as answer:
        assert answer is not None
        vectors, precision = answer()
    assert precision == "float32"
    assert np.linalg.norm(vectors - np.tile(given.vectors, (times, 1)), axis=1).max() < FAR["float32"] / 10
