"""An update of the baseline is all or nothing; a reader moves nothing, whatever a change left in the suite's folder."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kbgate.tasks.baseline import commit as module
from kbgate.tasks.baseline import files
from kbgate.tasks.baseline.files import FILES, finish_update, read_baseline
from kbgate.tasks.domain import Baseline
from kbgate.tasks.errors import InputError, Unmeasured
from kbgate.tasks.settings import Suite
from tests.conftest import edit_text
from tests.exams import Desk, filler

CLI = Callable[..., int]
HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c0")
COMMIT = module.COMMIT


def suite_of(folder: Path) -> Suite:
    return Suite(folder=folder, name="desk", given="desk")


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def everything(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, git's own left out."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(".git/")}


def interrupted(desk: Desk, moved: int, monkeypatch: pytest.MonkeyPatch, *, many_cards: bool = False) -> Baseline:
    """An update killed after so many files were moved home; returns what stood before."""
    for name in "abc":
        desk.case(name)
    old = desk.accept({"a": HIT, "b": MISS, "c": HIT})
    replace, calls = Path.replace, []

    def killed(self: Path, target: Path) -> Path:
        if self.parent.name == COMMIT:
            calls.append(self)
            if len(calls) > moved:
                raise KeyboardInterrupt
        return replace(self, target)

    if many_cards:
        monkeypatch.setattr(files, "PARQUET_ABOVE", 5)
    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        desk.accept({"a": HIT, "b": HIT, "c": HIT})
    monkeypatch.undo()
    return old


@pytest.mark.parametrize("many_cards", [False, True])
@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_kill_after_the_commit_point_is_finished_by_the_command_and_by_no_reader(
    moved: int, many_cards: bool, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(desk, moved, monkeypatch, many_cards=many_cards)
    before = everything(desk.folder)
    with pytest.raises(InputError, match="kbgate baseline update desk --finish"):
        read_baseline(suite_of(desk.folder))
    assert everything(desk.folder) == before
    finished = finish_update(suite_of(desk.folder))
    assert finished is not None
    assert finished.summary.means["contract@3"].mean == 1.0
    assert not (desk.folder / COMMIT).exists()
    assert (desk.folder / "baseline.cards.parquet").exists() == many_cards
    assert read_baseline(suite_of(desk.folder)) == finished
    assert finish_update(suite_of(desk.folder)) is None


def test_a_kill_after_the_last_file_leaves_a_folder_to_take_away(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(desk, 2, monkeypatch)
    (desk.folder / COMMIT / "baseline.json").replace(desk.folder / "baseline.json")
    finished = finish_update(suite_of(desk.folder))
    assert finished is not None
    assert finished.summary.means["contract@3"].mean == 1.0
    assert not (desk.folder / COMMIT).exists()


def other_settings(folder: Path, outside: Path) -> None:
    (folder / COMMIT / "suite.toml").write_text('name = "desk"\n')


def a_folder(folder: Path, outside: Path) -> None:
    (folder / COMMIT / "baseline.json").unlink()
    (folder / COMMIT / "baseline.json").mkdir()


def a_link_to_a_file(folder: Path, outside: Path) -> None:
    (folder / COMMIT / "baseline.json").rename(outside / "baseline.json")
    (folder / COMMIT / "baseline.json").symlink_to(outside / "baseline.json")


def a_link_to_a_folder(folder: Path, outside: Path) -> None:
    shutil.copytree(folder / COMMIT, outside, dirs_exist_ok=True)
    shutil.rmtree(folder / COMMIT)
    (folder / COMMIT).symlink_to(outside)


def a_dangling_link(folder: Path, outside: Path) -> None:
    shutil.rmtree(folder / COMMIT)
    (folder / COMMIT).symlink_to(outside / "nowhere")


def a_file(folder: Path, outside: Path) -> None:
    shutil.rmtree(folder / COMMIT)
    (folder / COMMIT).write_text("")


def another_score(folder: Path, outside: Path) -> None:
    edit_text(folder / COMMIT / "baseline.cases.jsonl", '"contract@3":1.0', '"contract@3":0.0')


def half_a_file(folder: Path, outside: Path) -> None:
    text = (folder / COMMIT / "baseline.json").read_text()
    (folder / COMMIT / "baseline.json").write_text(text[: len(text) // 2])


def one_file_of_it(folder: Path, outside: Path) -> None:
    (folder / COMMIT / "baseline.cases.jsonl").unlink()


def the_rest_behind_a_link(folder: Path, outside: Path) -> None:
    """What would stay must be a file as well, or the proof would read what lies elsewhere."""
    (folder / COMMIT / "baseline.cards.jsonl").unlink()
    (folder / "baseline.cards.jsonl").rename(outside / "cards.jsonl")
    (folder / "baseline.cards.jsonl").symlink_to(outside / "cards.jsonl")


def tracked(folder: Path, outside: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "-A")


def committed_and_taken_from_the_index(folder: Path, outside: Path) -> None:
    tracked(folder, outside)
    git(folder, "commit", "-qm", "half-way")
    git(folder, "rm", "-rq", "--cached", COMMIT)


PLANTED = [
    other_settings, a_folder, a_link_to_a_file, a_link_to_a_folder, a_dangling_link, a_file, another_score, half_a_file,
    one_file_of_it, the_rest_behind_a_link, tracked, committed_and_taken_from_the_index,
]  # fmt: skip


@pytest.mark.parametrize("plant", PLANTED)
def test_nothing_that_was_planted_is_moved(
    plant: Callable[[Path, Path], None], desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(desk, 0, monkeypatch)
    outside = tmp_path / "outside"
    outside.mkdir()
    plant(desk.folder, outside)
    before = everything(desk.folder), everything(outside)
    with pytest.raises(InputError, match="--finish"):
        read_baseline(suite_of(desk.folder))
    with pytest.raises(InputError, match=r"nothing was moved") as refused:
        finish_update(suite_of(desk.folder))
    assert refused.value.exit_code == 2
    assert (everything(desk.folder), everything(outside)) == before


def test_an_empty_folder_beside_no_baseline_is_refused(desk: Desk) -> None:
    (desk.folder / COMMIT).mkdir()
    with pytest.raises(InputError, match="is empty, and there is no baseline beside it"):
        finish_update(suite_of(desk.folder))


def test_a_git_that_cannot_say_what_it_tracks_stops_the_move(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(desk, 0, monkeypatch)
    (desk.folder / ".git").write_text("gitdir: nowhere\n")
    before = everything(desk.folder)
    with pytest.raises(Unmeasured, match="git does not say whether it tracks the folder"):
        finish_update(suite_of(desk.folder))
    assert everything(desk.folder) == before


def test_what_is_staged_is_kbgates_own_folder(desk: Desk, tmp_path: Path) -> None:
    for name in "abc":
        desk.case(name)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_text("")
    (desk.folder / ".baseline.staged").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match="remove it"):
        desk.accept({"a": HIT, "b": MISS, "c": HIT})
    assert (tmp_path / "outside" / "kept").exists()
    assert not (desk.folder / "baseline.json").exists()


@pytest.mark.parametrize("command", ["check", "evaluate", "nightly", "promote", "baseline show", "baseline diff"])
def test_every_command_that_reads_refuses_and_moves_nothing(
    command: str, medication: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    (medication / COMMIT).mkdir()
    (medication / COMMIT / "suite.toml").write_text('name = "medication"\n')
    before = everything(medication)
    assert kbgate(*command.split(), medication) == 2
    told = capsys.readouterr()
    assert f"kbgate baseline update {medication} --finish" in told.out + told.err
    assert everything(medication) == before


def test_the_command_finishes_and_says_so(medication: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    before = everything(medication)
    (medication / COMMIT).mkdir()
    for name in FILES[:3]:
        shutil.move(medication / name, medication / COMMIT / name)
    assert kbgate("baseline", "update", medication, "--finish", "--reason", "as well") == 2
    assert kbgate("baseline", "update", medication, "--finish") == 0
    assert "is whole again" in capsys.readouterr().out
    assert everything(medication) == before
    assert kbgate("baseline", "update", medication, "--finish") == 0
    assert "nothing to finish" in capsys.readouterr().out
