"""What git left unfinished is refused by name, in whatever file it stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbgate.tasks.baseline.files import CARDS, CARDS_PARQUET, CASES, SUMMARY, read_baseline
from kbgate.tasks.errors import InputError
from kbgate.tasks.index.models import identify_model
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.golden import load_golden
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.settings import Embedding, Kb, Suite
from kbgate.tasks.unfinished import refuse_unfinished
from tests.exams import Desk, filler

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 12345\n"
ANNEX = "/annex/objects/SHA256E-s12345--4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393.md\n"
MARKED = "Title\n<<<<<<< HEAD\nThirty days.\n=======\nForty days.\n>>>>>>> policy\nEnd\n"


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        refuse_unfinished("a.md", text)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        POINTER,
        POINTER.rstrip("\n"),
        POINTER.replace("\n", "\r\n"),
        POINTER.replace("oid", "ext-0-foo sha256:" + "a" * 64 + "\noid"),
        POINTER.replace("git-lfs.github.com/spec", "hawser.github.com/spec"),
    ],
)
def test_a_pointer_of_git_lfs_is_no_content(text: str) -> None:
    assert refused(text) == "a.md: is a Git LFS pointer, not the file itself; fetch it with: git lfs pull"


def test_so_is_one_of_git_annex() -> None:
    assert "git-annex pointer" in refused(ANNEX)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MARKED, "a.md:2: holds a conflict marker of git ('<<<<<<< HEAD')"),
        ("x\n<<<<<<<\ny\n", "a.md:2: "),
        ("Ours\n||||||| base\nx\n=======\nTheirs\n>>>>>>> main\n", "a.md:6: holds a conflict marker of git ('>>>>>>> main')"),
        ("<<<<<<< HEAD\n", "a.md:1: "),
    ],
)
def test_a_marker_of_a_merge_is_told_with_its_line(text: str, said: str) -> None:
    assert said in refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "Install\n=======\n\nSteps.\n",
        ">>>>>>> a mail that was quoted seven times\n",
        ">>>>>>> quoted\n\nInstall\n=======\n",
        "    <<<<<<< HEAD\n    a merge, shown as code\n    >>>>>>> main\n",
        "<<<<<<<<<< ten of them\n",
        "We keep pointers:\n\n" + POINTER,
        POINTER + "\nThat was a pointer.\n" * 60,
        "see /annex/objects/x for more\n",
        "",
    ],
)
def test_text_about_git_is_text(text: str) -> None:
    refuse_unfinished("a.md", text)


@pytest.mark.parametrize("name", ["cards.jsonl", "cards.csv", "cards.parquet", "kb/a.md", "kb/sub/b.txt", "kb/corpus.jsonl"])
@pytest.mark.parametrize("left", [POINTER, MARKED], ids=["pointer", "marker"])
def test_whatever_holds_the_cards(name: str, left: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(left)
    path = "kb" if name.startswith("kb") else name
    kb = load_cards(Suite(folder=tmp_path, name="x", kb=Kb(path=path)))
    assert not kb.cards
    (problem,) = kb.problems
    assert problem.file == name.removeprefix("kb/")
    if name != "cards.parquet":
        assert ("Git LFS" if left == POINTER else "conflict marker") in problem.sentence
    elif left == POINTER:
        assert "Git LFS" in problem.sentence


@pytest.mark.parametrize("left", [POINTER, MARKED], ids=["pointer", "marker"])
def test_the_golden_set_and_the_settings(left: str, tmp_path: Path) -> None:
    said = "Git LFS" if left == POINTER else "conflict marker"
    (tmp_path / "golden.jsonl").write_text(left)
    assert said in str(load_golden(Suite(folder=tmp_path, name="x")).problems[0])
    (tmp_path / "suite.toml").write_text(left)
    with pytest.raises(InputError, match=said):
        load_suite(tmp_path)


@pytest.mark.parametrize("name", [SUMMARY, CASES, CARDS, CARDS_PARQUET])
@pytest.mark.parametrize("left", [POINTER, MARKED], ids=["pointer", "marker"])
def test_every_file_of_a_baseline(name: str, left: str, desk: Desk) -> None:
    desk.case("a")
    desk.accept({"a": filler("c0")})
    if name == CARDS_PARQUET:
        (desk.folder / CARDS).unlink()
    (desk.folder / name).write_text(left)
    with pytest.raises(InputError) as caught:
        read_baseline(load_suite(desk.folder))
    said = str(caught.value)
    assert "Git LFS pointer" in said or "conflict marker" in said or (name, left) == (CARDS_PARQUET, MARKED)
    assert "restore the files with: git checkout" in said


def test_the_weights_of_a_model(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({}))
    (model / "model.safetensors").write_text(POINTER)
    suite = Suite(folder=tmp_path, name="x", embedding=Embedding(model="model"))
    with pytest.raises(InputError, match=r"embedding.model: model.safetensors: is a Git LFS pointer"):
        identify_model(suite)
