"""A doubtful label goes to a person and comes back as gold, or not."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgate.tasks.diagnosis.labels import _cell, _text, doubts_of
from tests.conftest import edit_lines, read_lines, runs_in, write_lines
from tests.exams import CARDS, Desk, filler

CLI = Callable[..., int]
TEXT = "A parking permit for electric scooters costs twelve euros a month and is issued by the janitor."
OLD = (
    "=Whoever has a scooter: a parking permit for electric scooters comes at twelve euros monthly and is issued by the janitor "
    "as before. "
    "Bring papers and a pen to the cellar; lamps are out."
)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Two cards that say the same, of which the label knows the other one."""
    folder = tmp_path / "doubt"
    folder.mkdir()
    (folder / "suite.toml").write_text(
        'name = "doubt"\ntop_k = 1\nk_values = [1]\nas_of = 2026-06-01\n[retrieval]\nmethod = "dense"\n'
    )
    cards = [
        {"id": "permit", "text": TEXT},
        {"id": "permit-old", "text": OLD},
        {"id": "lift", "text": "The lift is inspected every spring."},
    ]
    write_lines(folder / "cards.jsonl", cards)
    case = {"id": "scooter", "query": "What does a parking permit for an electric scooter cost a month?"}
    write_lines(
        folder / "golden.jsonl",
        [{**case, "expected": ["permit-old"]}, {"id": "lift", "query": "When is the lift inspected?", "expected": ["lift"]}],
    )
    return folder


def review(home: Path) -> Path:
    runs = runs_in(home, "doubt")
    return runs[-1] / "label_review.csv"


def fill(path: Path, to: Path, **answers: str) -> Path:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= answers
    with to.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return to


def test_a_doubt_is_written_answered_and_read_back(
    suite: Path, home: Path, kbgate: CLI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kbgate("evaluate", suite) == 3
    with review(home).open(newline="") as file:
        (row,) = list(csv.DictReader(file))
    assert (row["case"], row["gold"], row["candidate"], row["rank"], row["same"]) == (
        "scooter",
        "permit-old",
        "permit",
        "1",
        "",
    )
    assert row["gold_text"].startswith("'=")  # no spreadsheet takes it for a formula
    assert float(row["similarity"]) > 0.8
    assert kbgate("import-labels", suite, review(home)) == 0
    assert "0 added, 0 refused, 1 still open" in capsys.readouterr().out
    before = (suite / "golden.jsonl").read_text()
    assert kbgate("import-labels", suite, fill(review(home), tmp_path / "no.csv", same="no")) == 0
    assert (suite / "golden.jsonl").read_text() == before
    assert kbgate("import-labels", suite, fill(review(home), tmp_path / "yes.csv", same="Yes")) == 0
    assert "scooter: 'permit' is gold too" in capsys.readouterr().out
    cases = {case["id"]: case for case in read_lines(suite / "golden.jsonl")}
    assert cases["scooter"]["groups"] == [["permit-old", "permit"]]
    assert "expected" not in cases["scooter"]
    assert cases["lift"]["expected"] == ["lift"]
    assert kbgate("evaluate", suite) == 3
    assert not review(home).exists()


FORMULAS = (
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\uff1d1",
    "'=1",
    "''=1",
    "a;=1",
    "a,+1",
    "a\t-1",
    "a\n=1",
    "a|@b",
    "a\r=1",
    "-",
)


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_no_program_finds_a_formula_in_a_cell_wherever_it_cuts(text: str, separator: str) -> None:
    for line in re.split(r"[\r\n]", _cell(text)):
        assert not [part for part in line.split(separator) if part[:1] in "=+-@\t\uff1d" and part], _cell(text)


@given(st.text(alphabet="'=+-@;,\t\n| a\uff1d"))
def test_a_cell_gives_its_text_back(text: str) -> None:
    assert _text(_cell(text)) == text


def test_ids_that_begin_like_formulas_come_back_as_gold(
    suite: Path, home: Path, kbgate: CLI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"scooter": "=1+1", "permit": "+permit", "permit-old": "-old"}
    edit_lines(suite / "cards.jsonl", lambda card: {**card, "id": names.get(card["id"], card["id"])})
    edit_lines(
        suite / "golden.jsonl",
        lambda case: {**case, "id": names.get(case["id"], case["id"]), "expected": [names.get(c, c) for c in case["expected"]]},
    )
    assert kbgate("evaluate", suite) == 3
    with review(home).open(newline="") as file:
        head, *rows = csv.reader(file)
    assert [rows[0][head.index(name)] for name in ("case", "gold", "candidate")] == ["'=1+1", "'-old", "'+permit"]
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r") and cell]
    assert kbgate("import-labels", suite, fill(review(home), tmp_path / "yes.csv", same="yes")) == 0
    assert "=1+1: '+permit' is gold too" in capsys.readouterr().out


def test_every_mistake_of_a_review_is_told_and_nothing_is_written(
    suite: Path, home: Path, kbgate: CLI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kbgate("evaluate", suite)
    before = (suite / "golden.jsonl").read_text()
    for answers, complaint in (
        ({"same": "perhaps"}, "same: found 'perhaps'; write yes, no or nothing"),
        ({"same": "yes", "case": "scoter"}, "unknown case 'scoter'; did you mean 'scooter'"),
        ({"same": "yes", "candidate": "permt"}, "unknown card 'permt'; did you mean 'permit'"),
        ({"same": "yes", "gold": "lift"}, "'lift' is no gold of case 'scooter'"),
    ):
        assert kbgate("import-labels", suite, fill(review(home), tmp_path / "odd.csv", **answers)) == 2
        assert f"odd.csv:2: {complaint}" in capsys.readouterr().err
    assert (suite / "golden.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("form", "after"),
    [
        ({"must_cite_one_of": ["permit-old"]}, {"must_cite_one_of": ["permit-old", "permit"]}),
        ({"groups": [["permit-old"], ["lift"]]}, {"groups": [["permit-old", "permit"], ["lift"]]}),
        ({"groups": [["permit-old"]], "grades": {"permit-old": 2}},
         {"groups": [["permit-old", "permit"]], "grades": {"permit-old": 2, "permit": 2}}),
    ],
)  # fmt: skip
def test_a_label_is_written_in_the_form_the_case_has(
    form: dict[str, Any], after: dict[str, Any], suite: Path, home: Path, kbgate: CLI, tmp_path: Path
) -> None:
    cases = read_lines(suite / "golden.jsonl")
    cases[0] = {"id": "scooter", "query": cases[0]["query"], **form}
    write_lines(suite / "golden.jsonl", cases)
    kbgate("evaluate", suite)
    assert kbgate("import-labels", suite, fill(review(home), tmp_path / "yes.csv", same="yes")) == 0
    written = read_lines(suite / "golden.jsonl")[0]
    assert {name: written[name] for name in after} == after
    assert kbgate("check", suite) == 0


def test_evidence_is_left_to_a_person(
    suite: Path, home: Path, kbgate: CLI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = read_lines(suite / "golden.jsonl")
    cases[0] = {"id": "scooter", "query": cases[0]["query"], "evidence": [{"card": "permit-old", "text": "twelve euros"}]}
    write_lines(suite / "golden.jsonl", cases)
    kbgate("evaluate", suite)
    assert kbgate("import-labels", suite, fill(review(home), tmp_path / "yes.csv", same="yes")) == 2
    assert "names evidence; add the excerpt of 'permit' by hand" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "holds no row"),
        ("case,gold,candidate,same\n", "holds no row"),
        ("case,gold,candidate\nscooter,permit-old,permit\n", "has no column 'same'"),
        ("case,gold,candidate,same\nscooter,permit-old,permit,yes\nscooter,permit-old,permit,no\n", "is answered twice"),
    ],
)
def test_what_is_no_review_is_refused(
    text: str, complaint: str, suite: Path, kbgate: CLI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (suite / "golden.jsonl").read_bytes()
    (tmp_path / "odd.csv").write_text(text)
    assert kbgate("import-labels", suite, tmp_path / "odd.csv") == 2
    assert complaint in capsys.readouterr().err
    assert (suite / "golden.jsonl").read_bytes() == before


def test_the_other_lines_of_a_golden_set_stay_as_they_are(suite: Path, kbgate: CLI, tmp_path: Path) -> None:
    """A case that is only graded gets another grade; Windows' line ends stay."""
    graded = '{"id": "scooter", "query": "What does it cost?", "grades": {"permit-old": 2}}\r\n'
    (suite / "golden.jsonl").write_bytes((graded + '{"id": "lift",  "query": "When?", "expected": ["lift"]}\r\n').encode())
    (tmp_path / "yes.csv").write_text("case,gold,candidate,same\n" + "scooter,permit-old,permit,yes\n" * 2)
    assert kbgate("import-labels", suite, tmp_path / "yes.csv") == 0
    first, second, rest = (suite / "golden.jsonl").read_bytes().decode().split("\r\n")
    assert first == '{"id": "scooter", "query": "What does it cost?", "grades": {"permit-old": 2, "permit": 2}}'
    assert (second, rest) == ('{"id": "lift",  "query": "When?", "expected": ["lift"]}', "")
    assert kbgate("check", suite) == 0


class Alike:
    """Knows which cards are alike, and nothing else of a laboratory."""

    def __init__(self, **alike: float):
        self.cards, self._alike = dict.fromkeys(CARDS), alike

    def similarity(self, one: str, other: str) -> float:
        return self._alike.get(f"{one}_{other}", 0.1)


def doubted(desk: Desk, ranking: list[str], *failing: str, **alike: float) -> list[tuple[str, str, str, int, float]]:
    """Case, gold, candidate, its rank and likeness of every doubt about a case that should find c0."""
    lab: Any = Alike(**alike)
    doubts = doubts_of(desk.exam({"q": ranking}), lab, failing or ("q",))
    return [(d.case, d.gold, d.candidate, d.rank, d.similarity) for d in doubts]


@pytest.mark.parametrize(("likeness", "doubtful"), [(0.75, True), (0.7499, False), (0.99, True), (0.0, False)])
def test_only_a_card_that_says_much_the_same_is_in_doubt(likeness: float, doubtful: bool, desk: Desk) -> None:
    desk.case("q")
    found = doubted(desk, filler("c1", "c2", "c3", "c0"), c0_c2=likeness)
    assert found == ([("q", "c0", "c2", 2, likeness)] if doubtful else [])


def test_no_doubt_where_the_gold_is_found_or_the_card_is_judged_or_the_case_passes(desk: Desk) -> None:
    desk.case("q")
    assert doubted(desk, filler("c1", "c2", "c0"), c0_c2=0.9) == []
    assert doubted(desk, filler("c1", "c2", "c3", "c0"), "another", c0_c2=0.9) == []
    assert doubted(desk, filler("c1", "c3", "c4", "c2", "c0"), c0_c2=0.9) == []
    desk.case("q", grades={"c0": 2, "c2": 1})
    assert doubted(desk, filler("c1", "c2", "c3", "c0"), c0_c2=0.9, c0_c1=0.8) == [("q", "c0", "c1", 1, 0.8)]
