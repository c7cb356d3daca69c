"""Two suites of one name are two suites: by lineage, and by folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbgate.tasks.errors import InputError
from kbgate.tasks.identity import folder_of, identity_of, run_folder, runs_of
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.settings import Suite
from tests.exams import Desk, filler


def suite_in(folder: Path, name: str = "faq") -> Suite:
    folder.mkdir(parents=True, exist_ok=True)
    return Suite(folder=folder, name=name)


def test_before_the_first_acceptance_the_folder_alone_counts(tmp_path: Path) -> None:
    one, other = (identity_of(suite_in(tmp_path / team / "faq")) for team in ("a", "b"))
    assert (one.lineage, other.lineage) == ("", "")
    assert one.key != other.key
    assert one.key == identity_of(suite_in(tmp_path / "a" / "faq")).key
    assert one.key.startswith("faq-")
    assert len(one.key) == len("faq-") + 8


def test_a_folder_is_told_from_the_root_of_its_repository(tmp_path: Path) -> None:
    for clone in ("here", "there"):
        (tmp_path / clone / ".git").mkdir(parents=True)
    here, there = (suite_in(tmp_path / clone / "baselines" / "faq") for clone in ("here", "there"))
    assert folder_of(here.folder) == folder_of(there.folder) == "baselines/faq"
    assert folder_of(suite_in(tmp_path / "outside").folder) == (tmp_path / "outside").resolve().as_posix()


def test_a_link_is_the_suite_it_leads_to(tmp_path: Path) -> None:
    real = suite_in(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert identity_of(Suite(folder=tmp_path / "link", name="faq")) == identity_of(real)


def test_a_copy_is_another_suite_and_knows_the_cards_it_began_with(desk: Desk, tmp_path: Path) -> None:
    desk.case("a")
    first = desk.accept({"a": filler("c0")})
    mine, copy = identity_of(load_suite(desk.folder)), identity_of(load_suite(desk.copy(tmp_path / "copy").folder))
    assert mine.lineage == copy.lineage == first.summary.lineage
    assert mine.key != copy.key
    assert mine.archive == copy.archive


def test_what_was_begun_anew_is_another_suite(desk: Desk) -> None:
    desk.case("a")
    desk.accept({"a": filler("c0")})
    before = identity_of(load_suite(desk.folder))
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    assert identity_of(load_suite(desk.folder)).key != before.key
    desk.accept({"a": filler("c0")})
    after = identity_of(load_suite(desk.folder))
    assert (after.folder, after.lineage == before.lineage) == (before.folder, False)


def test_the_first_acceptance_leaves_what_was_before_in_reach(desk: Desk, tmp_path: Path) -> None:
    desk.case("a")
    desk.exam({"a": filler("c0")})
    before = identity_of(load_suite(desk.folder))
    old = runs_of(tmp_path, load_suite(desk.folder)) / "run"
    old.mkdir(parents=True)
    desk.accept({"a": filler("c0")})
    suite = load_suite(desk.folder)
    after = identity_of(suite)
    assert before.keys == (before.key,)
    assert after.keys == (before.key, after.key)
    assert after.archives == (after.archive, before.archive, "desk")
    assert run_folder(tmp_path, suite, "run") == old
    assert run_folder(tmp_path, suite, "other") == runs_of(tmp_path, suite) / "other"


@pytest.mark.parametrize("text", ["{", "<<<<<<< HEAD\n{}\n", ""])
def test_a_baseline_that_cannot_be_read_says_so_and_makes_nobody_else_of_a_suite(text: str, tmp_path: Path) -> None:
    suite = suite_in(tmp_path / "faq")
    (suite.folder / "baseline.json").write_text(text)
    with pytest.raises(InputError, match=r"baseline\.json.*(is not valid JSON|holds a conflict marker)"):
        runs_of(tmp_path, suite)


def test_one_of_an_older_kbgate_has_no_lineage(tmp_path: Path) -> None:
    suite = suite_in(tmp_path / "faq")
    for text in ("{}", "[]", '{"lineage": 1}'):
        (suite.folder / "baseline.json").write_text(text)
        assert identity_of(suite).lineage == ""
