"""Edited cases through the whole pipeline: asked again as they were worded before, kept with the run, recomputed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kbgate.tasks.baseline.files import read_baseline
from kbgate.tasks.inputs.golden import load_golden
from kbgate.tasks.inputs.subset import select_fast
from kbgate.tasks.inputs.suite import load_suite
from tests.conftest import edit_lines, read_lines, write_lines
from tests.parts.school import FOREIGN, QUESTIONS, School

TAXES = "when are returns due"


class LargerSchool(School):
    """Each question but one in three wordings, so that one edited case is well within a tenth."""

    def write(self) -> None:
        super().write()
        cases = read_lines(self.folder / "golden.jsonl")
        others = [(case, n) for case in cases if case["id"] != "violin" for n in (1, 2)]
        more = [{**case, "id": f"{case['id']}-{n}", "query": case["query"] + " please" * n} for case, n in others]
        write_lines(self.folder / "golden.jsonl", [*cases, *more])


@pytest.fixture
def school(tmp_path: Path, kbgate: Callable[..., int], home: Path) -> School:
    school = LargerSchool(tmp_path / "repo", tmp_path.name.replace("_", "-").lower(), kbgate, home)
    school.root.mkdir()
    school.accept()
    return school


def reword(school: School, case: str, query: str) -> None:
    edit_lines(school.folder / "golden.jsonl", lambda row: {**row, "query": query} if row["id"] == case else row)
    school.commit("reworded")


def test_a_case_reworded_to_what_its_card_says_now_does_not_pass(school: School) -> None:
    """The card on violins is on taxes now, and so is the question: nobody who asks about violins is answered."""
    school.change("worse", violin=FOREIGN)
    reword(school, "violin", TAXES)
    assert school.pull_request() == 1
    verdict = school.verdict
    assert verdict["reasons"][0]["sentence"] == (
        "1 case newly failing: violin; as the baseline words it, before it was edited: violin"
    )
    assert (verdict["mode"], verdict["newly_failing"], verdict["cases"]["edited"]) == ("full", ["violin"], ["violin"])
    assert "Failing as it was asked" in school.report
    assert (school.newest / "earlier.parquet").exists()
    assert school.kbgate("verify", school.newest) == 0


def test_what_the_earlier_wording_got_is_part_of_what_is_verified(school: School, capsys: pytest.CaptureFixture[str]) -> None:
    school.change("worse", violin=FOREIGN)
    reword(school, "violin", TAXES)
    assert school.pull_request() == 1
    (school.newest / "earlier.parquet").write_bytes((school.newest / "run.parquet").read_bytes())
    capsys.readouterr()
    assert school.kbgate("verify", school.newest) == 1
    assert "earlier.parquet is not what was written" in capsys.readouterr().out


def test_a_case_that_passes_in_both_wordings_warns_and_is_asked_beside_the_subset(school: School) -> None:
    suite = load_suite(school.folder)
    fast = set(select_fast(load_golden(suite).cases, 4, read_baseline(suite)))
    case = min({"violin", "tent", "soup", "bees", "roses"} - fast)
    reword(school, case, f"{QUESTIONS[case]} indeed")
    assert school.pull_request() == 0, school.verdict["reasons"]
    assert (school.verdict["mode"], school.verdict["verdict"]) == ("fast", "WARN")
    assert "edited" in {reason["check"] for reason in school.verdict["reasons"]}
    assert school.verdict["newly_failing"] == []
    # What the baseline does not know as it is now takes no place of the subset: it comes on top.
    ranked = {line.split()[0] for line in (school.newest / "run.trec").read_text().splitlines()}
    assert ranked == {*fast, case}
    assert school.kbgate("verify", school.newest) == 0


def test_a_baseline_of_reworded_cases_is_held_against_the_wording_of_the_anchor(
    school: School, capsys: pytest.CaptureFixture[str]
) -> None:
    """Outside of a pull request the edit is told; to accept it as if nothing had been lost is refused."""
    school.change("worse", violin=FOREIGN)
    reword(school, "violin", TAXES)
    school.run("evaluate")
    assert school.kbgate("verify", school.newest) == 0
    capsys.readouterr()
    update = ("baseline", "update", school.folder, "--reason", "reworded", "--accept-regression")
    assert school.kbgate(*update) == 1
    assert "contract is 0.045 worse than the anchor" in capsys.readouterr().err
    assert school.kbgate(*update, "--anchor") == 0
