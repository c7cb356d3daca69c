"""Single cases are accepted one by one: their rows change, and all the rest of the baseline stays and goes on judging."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kbgate.tasks.baseline.review import diff_baselines
from kbgate.tasks.baseline.single_rows import accept_rows
from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.domain import Baseline
from kbgate.tasks.errors import InputError, Refused, Unmeasured
from kbgate.tasks.schema import Mean
from tests.conftest import read_lines
from tests.exams import Desk, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")
GIVEN = {f"q{n:02d}": HIT for n in range(60)}
WORSE = {**GIVEN, "q01": MISS, "q02": MISS}


@pytest.fixture
def desk(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ann Example")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "ann@example.invalid")
    for case in GIVEN:
        desk.case(case)
    desk.accept(GIVEN)
    return desk


def accept(desk: Desk, rankings: dict[str, Any], *cases: str, reason: str = "the tariff went") -> Baseline:
    return accept_rows(desk.evaluation(rankings), cases, reason)


def summary_of(desk: Desk) -> dict[str, Any]:
    written: dict[str, Any] = json.loads((desk.folder / "baseline.json").read_text())
    return {name: value for name, value in written.items() if name not in ("means", "digests")}


def test_one_row_is_replaced_and_nothing_else(desk: Desk) -> None:
    rows = {row["id"]: row for row in read_lines(desk.folder / "baseline.cases.jsonl")}
    cards, summary = (desk.folder / "baseline.cards.jsonl").read_bytes(), summary_of(desk)
    desk.cards.append({"id": "c99", "text": "new"})
    baseline = accept(desk, WORSE, "q01")
    now = {row["id"]: row for row in read_lines(desk.folder / "baseline.cases.jsonl")}
    assert [name for name in rows if rows[name] != now[name]] == ["q01"]
    assert now["q01"]["accepted"] == {
        "run": "20260601T023000Z-abcdef", "index": "f" * 16, "on": "2026-06-01", "by": "Ann Example <ann@example.invalid>",
        "reason": "the tariff went",
    }  # fmt: skip
    assert now["q01"]["anchor"] == rows["q01"]["anchor"]
    assert (desk.folder / "baseline.cards.jsonl").read_bytes() == cards
    assert summary_of(desk) == summary
    assert baseline.summary.means["contract@3"] == Mean(mean=0.983333, n=60)


def test_every_other_reason_goes_on_blocking(desk: Desk) -> None:
    accept(desk, WORSE, "q01")
    verdict = desk.judge(WORSE)
    assert verdict.name == VerdictName.BLOCK
    assert verdict.reasons[0].sentence == "1 case newly failing: q02"


def test_a_full_update_clears_the_mark(desk: Desk) -> None:
    marked = accept(desk, WORSE, "q01")
    assert marked.cases["q01"].accepted is not None
    anew = desk.accept({**GIVEN, "q01": MISS})
    assert anew.cases["q01"].accepted is None


def test_a_review_reads_who_and_why(desk: Desk) -> None:
    old = desk.exam(GIVEN).baseline
    lines = diff_baselines(old, accept(desk, WORSE, "q01"), desk.exam(GIVEN).suite)
    assert "case q01: contract@3 1.0 -> 0.0" in lines
    told = "case q01: accepted by itself, by Ann Example <ann@example.invalid> on 2026-06-01, from run"
    assert any(line.startswith(told) and line.endswith("the tariff went") for line in lines)


def test_one_row_a_day_does_not_add_up_unseen(desk: Desk) -> None:
    """Two of 60 are 0.033, three are 0.050: beyond twice the tolerance of 0.02."""
    many = {**WORSE, "q03": MISS}
    accept(desk, many, "q01")
    accept(desk, many, "q02")
    with pytest.raises(Refused, match=r"contract would be 0.050 worse than the anchor"):
        accept(desk, many, "q03")


def test_an_edited_case_keeps_its_anchor_and_the_wording_of_it(desk: Desk) -> None:
    desk.case("q01", query="asked otherwise?")
    row = accept(desk, GIVEN, "q01").cases["q01"]
    assert row.asked.query == "asked otherwise?"
    assert row.anchor is not None
    assert row.anchor.asked is not None
    assert row.anchor.asked.query == "q01?"
    desk.case("q01")
    back = accept(desk, GIVEN, "q01").cases["q01"]
    assert back.anchor is not None
    assert back.anchor.asked is None


def test_an_edited_row_counts_with_the_worse_of_its_wordings(desk: Desk) -> None:
    """All pass as they are worded now, and none as it was: two of 60 are 0.033, three are 0.050."""
    for name in ("q01", "q02", "q03"):
        desk.case(name, query=f"{name}? ")
    desk.earlier = {"q01": MISS, "q02": MISS, "q03": MISS}
    accept(desk, GIVEN, "q01")
    accept(desk, GIVEN, "q02")
    with pytest.raises(Refused, match=r"contract would be 0.050 worse than the anchor"):
        accept(desk, GIVEN, "q03")
    desk.earlier = {"q01": MISS, "q02": MISS, "q03": HIT}
    assert accept(desk, GIVEN, "q03").cases["q03"].accepted is not None


@pytest.mark.parametrize(
    ("case", "sentence"),
    [("q0l", "'q0l' is no case of the baseline"), ("new", "is new since the baseline"), ("q05", "is asked no more")],
)
def test_only_rows_that_are_there_and_were_asked(case: str, sentence: str, desk: Desk) -> None:
    desk.case("new")
    desk.cases = [row for row in desk.cases if row["id"] != "q05"]
    given = {**{name: ranking for name, ranking in WORSE.items() if name != "q05"}, "new": HIT}
    before = (desk.folder / "baseline.cases.jsonl").read_bytes()
    with pytest.raises(InputError, match=sentence):
        accept(desk, given, "q01", case)
    assert (desk.folder / "baseline.cases.jsonl").read_bytes() == before


def test_a_run_that_measured_less_gives_no_row(desk: Desk) -> None:
    with pytest.raises(Refused, match="a row needs a reason"):
        accept(desk, WORSE, "q01", reason=" ")
    with pytest.raises(Refused, match="never from the fast subset"):
        accept_rows(desk.evaluation({"q01": MISS}, mode="fast"), ["q01"], "r")
    with pytest.raises(Refused, match="the run is not complete"):
        accept(desk, {**WORSE, "q09": "timeout"}, "q01")
    with pytest.raises(Unmeasured, match="nothing to accept"):
        accept(desk, {name: "raised" for name in GIVEN}, "q01")
    desk.settings = "top_k = 2\nk_values = [1, 3]\n"
    with pytest.raises(Refused, match="top_k was 3 in the baseline and is 2 now"):
        accept(desk, WORSE, "q01")


def test_a_case_whose_gold_is_gone_wants_another_gold(desk: Desk) -> None:
    desk.cards = [card for card in desk.cards if card["id"] != "c0"]
    with pytest.raises(Refused, match="give the case another gold"):
        accept(desk, {name: filler("c1") for name in GIVEN}, "q01")


def test_without_a_baseline_there_is_no_row(desk: Desk) -> None:
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    with pytest.raises(Refused, match="there is no baseline whose rows could be replaced"):
        accept(desk, GIVEN, "q01")
