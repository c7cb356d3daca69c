"""A night misses what is not there: by the night before, by git, at whatever depth."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.errors import InputError
from kbgate.tasks.inputs.suite import find_suites
from kbgate.tasks.outcomes import Night, NightlyRow
from kbgate.tasks.runs.nights import FILE, Roll, append_night, call_the_roll
from tests.tasks.baseline.test_checkout import commit, git, suite_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two suites, one of them a level deeper, in no repository."""
    for name in ("faq", "team/hr"):
        suite_in(tmp_path / "repo" / "suites" / name)
    return tmp_path / "repo" / "suites"


@pytest.fixture
def committed(folder: Path) -> Path:
    """The same in a repository."""
    git(folder.parent, "init", "-q", "-b", "main")
    commit(folder.parent)
    return folder


def night(folder: Path, home: Path, *forgotten: str) -> tuple[Roll, Night]:
    """A night in which every suite that is there passes."""
    roll = call_the_roll(home, folder, forgotten)
    passed = (NightlyRow(suite, VerdictName.PASS, 0, "nothing changed") for suite in roll.suites)
    whole = Night((*passed, *roll.missed))
    home.mkdir(exist_ok=True)
    append_night(home, whole, roll)
    return roll, whole


def told(roll: Roll) -> dict[str, str]:
    return {Path(row.suite).name: row.worst for row in roll.missed}


def test_suites_are_found_at_whatever_depth(folder: Path) -> None:
    suite_in(folder / "team" / "of" / "many" / "it")
    for name in (".hidden", "node_modules", "team/.kbgate/x"):
        suite_in(folder / name)
    (folder / "kept").mkdir()
    (folder / "kept" / "baseline.json").write_text("{}")
    (folder / "beir").mkdir()
    (folder / "beir" / "queries.jsonl").write_text("")
    (folder / "faq" / "collection").mkdir()
    (folder / "faq" / "collection" / "queries.jsonl").write_text("")
    (folder / "linked").symlink_to(folder / "team" / "hr")
    names = [Path(suite).relative_to(folder).as_posix() for suite in find_suites(folder)]
    assert names == ["beir", "faq", "kept", "linked", "team/hr", "team/of/many/it"]
    assert find_suites(folder / "nowhere") == []


def test_a_folder_that_cannot_be_read_may_hold_a_suite(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    scan = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("team"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match="team: cannot be read \\(Permission denied\\), and there may be suites in it"):
        find_suites(folder)


def test_a_suite_of_last_night_that_is_gone_is_missed_until_it_is_back(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert night(folder, home)[1].exit_code == 0
    (folder / "team" / "hr").rename(tmp_path / "hr")
    for _ in range(2):  # the night that missed it does not make it forgotten
        roll, whole = night(folder, home)
        assert (whole.name, whole.exit_code) == ("ERROR", 4)
        assert told(roll) == {"hr": "was there last night and is gone; bring it back, or, where that was meant: "
                                    f"kbgate nightly --folder {folder} --forget team/hr"}  # fmt: skip
    (tmp_path / "hr").rename(folder / "team" / "hr")
    assert night(folder, home)[1].exit_code == 0


def test_what_was_meant_is_said_by_name_and_once(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    night(folder, home)
    shutil.rmtree(folder / "team" / "hr")
    with pytest.raises(InputError, match="'faq' is not missing; known: team/hr"):
        night(folder, home, "faq")
    assert night(folder, home, "team/hr")[1].exit_code == 0
    assert night(folder, home)[1].exit_code == 0
    with pytest.raises(InputError, match="'team/hr' is not missing"):
        night(folder, home, "team/hr")


def test_the_last_of_all_suites_is_missed_too(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    night(folder, home)
    shutil.rmtree(folder)
    roll, whole = night(folder, home)
    assert (set(told(roll)), whole.exit_code) == ({"faq", "hr"}, 4)


def test_another_folder_or_a_night_of_named_suites_is_not_last_night(folder: Path, tmp_path: Path) -> None:
    home, named = tmp_path / "home", Night((NightlyRow("suites/faq", VerdictName.PASS, 0, ""),))
    night(folder, home)
    append_night(home, named, Roll("", ("suites/faq",)))
    suite_in(tmp_path / "elsewhere" / "other")
    night(tmp_path / "elsewhere", home)
    with (home / FILE).open("a") as file:
        file.write('{"verdict": "PASS", "rows"\n[]\n')  # a disk that was full
    shutil.rmtree(folder / "team")
    assert set(told(night(folder, home)[0])) == {"hr"}


def test_what_git_has_is_missed_on_a_machine_that_saw_no_night(committed: Path, tmp_path: Path) -> None:
    suite_in(committed / "new")
    assert night(committed, tmp_path / "first")[1].exit_code == 0
    shutil.rmtree(committed / "team" / "hr")
    git(committed, "rm", "-rq", "--cached", "team/hr")
    roll, whole = night(committed, tmp_path / "second")
    assert (whole.name, whole.exit_code) == ("ERROR", 4)
    assert told(roll)["hr"].startswith(f"is committed and is not there; next: git restore {committed}/team/hr")


def test_what_a_commit_took_away_is_told_once(committed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    night(committed, home)
    git(committed, "mv", "team/hr", "people")
    commit(committed)
    roll, whole = night(committed, home)
    assert (whole.name, whole.exit_code) == ("WARN", 0)
    assert told(roll)["hr"].startswith("commit ")
    assert [Path(suite).name for suite in roll.suites] == ["faq", "people"]
    assert night(committed, home)[1].name == "PASS"


def test_what_was_never_committed_is_missed_in_a_repository_too(committed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    suite_in(committed / "draft")
    night(committed, home)
    shutil.rmtree(committed / "draft")
    assert night(committed, home)[1].exit_code == 4


def test_a_part_of_a_checkout_misses_what_it_should_have(committed: Path, tmp_path: Path) -> None:
    git(committed.parent, "sparse-checkout", "set", "--no-cone", "/suites/faq/")
    assert not (committed / "team").exists()
    assert night(committed, tmp_path / "home")[1].exit_code == 0


def test_a_repository_git_does_not_read_is_told(committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    roll, whole = night(committed, tmp_path / "home")
    assert (whole.name, whole.exit_code) == ("WARN", 0)
    assert "dubious ownership" in roll.missed[0].worst
    monkeypatch.setenv("PATH", str(tmp_path))
    assert night(committed, tmp_path / "home")[1].name == "PASS"
