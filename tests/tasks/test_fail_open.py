"""Ways in which a gate could stay green by accident, each with the verdict and exit code it must end with instead."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from tasks.baseline import write_baseline
from tasks.domain import Verdict
from tasks.errors import InputError, KbgateError, Refused
from tasks.gate import judge
from tasks.registry import METRICS
from tests.conftest import edit_text, read_lines, write_lines
from tests.exams import Desk, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")
COUNT = 240
Answers = dict[str, Any]


@pytest.fixture
def answers(desk: Desk) -> Answers:
    """240 cases, all passing, accepted; the first is a canary, the second has a tier-gold answer."""
    desk.cards[9]["tier"] = "gold"
    for n in range(COUNT):
        desk.case(f"q{n:03d}", canary=n == 0, **({"expected": ["c0", "c9"]} if n == 1 else {}))
    given: Answers = {f"q{n:03d}": HIT for n in range(COUNT)} | {"q001": filler("c0", "c9")}
    desk.accept(given)
    return given


def some(answers: Answers, count: int, outcome: Any) -> Answers:
    return {case: outcome if n < count else given for n, (case, given) in enumerate(answers.items())}


def edited(desk: Desk, *cases: str) -> None:
    for case in cases:
        row = next(row for row in desk.cases if row["id"] == case)
        desk.case(case, query="another question?", **{k: v for k, v in row.items() if k not in ("id", "query")})


def without(desk: Desk, answers: Answers, *cases: str) -> Answers:
    desk.cases = [row for row in desk.cases if row["id"] not in cases]
    return {case: given for case, given in answers.items() if case not in cases}


def spoil_exam(desk: Desk, answers: Answers, **columns: Any) -> Verdict:
    exam = desk.exam(answers)
    figures = exam.scores.figures.copy()
    figures.loc[figures.index[:1], "value"] = columns["value"]
    return judge(dataclasses.replace(exam, scores=dataclasses.replace(exam.scores, figures=figures)))


def baseline_without_a_case(desk: Desk, answers: Answers) -> Verdict:
    rows = read_lines(desk.folder / "baseline.cases.jsonl")
    write_lines(desk.folder / "baseline.cases.jsonl", rows[1:])
    return desk.judge(answers)


def baseline_with(desk: Desk, answers: Answers, old: str, new: str) -> Verdict:
    edit_text(desk.folder / "baseline.json", old, new)
    return desk.judge(answers)


def gates(desk: Desk, answers: Answers, text: str) -> Verdict:
    desk.gates = text
    return desk.judge(answers)


def only_no_match(desk: Desk, answers: Answers) -> Verdict:
    desk.cases = []
    desk.case("m", kind="no_match")
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    return desk.judge({"m": []})


def nothing_asked(desk: Desk, answers: Answers) -> Verdict:
    desk.cases = []
    return desk.judge({})


def allowed(desk: Desk, answers: Answers, until: dt.date, case: str = "q005") -> Verdict:
    desk.settings += f'[[allow]]\ncase = "{case}"\ncheck = "newly_failing"\nreason = "meant"\nuntil = {until.isoformat()}\n'
    return desk.judge({**answers, "q005": MISS})


def edit_the_failing(desk: Desk, answers: Answers) -> Verdict:
    edited(desk, "q005")
    return desk.judge({**answers, "q005": MISS})


def edit(desk: Desk, answers: Answers, *cases: str) -> Verdict:
    edited(desk, *cases)
    return desk.judge(answers)


def remove(desk: Desk, answers: Answers, case: str) -> Verdict:
    return desk.judge(without(desk, answers, case))


def gold_gone(desk: Desk, answers: Answers) -> Verdict:
    desk.cards = [card for card in desk.cards if card["id"] != "c9"]
    return desk.judge({case: [c for c in given if c != "c9"] for case, given in answers.items()})


def rejected_card(desk: Desk, answers: Answers) -> Verdict:
    desk.settings += '[kb]\non_bad_card = "reject"\n'
    desk.cards.append({"id": "bad"})
    return desk.judge(answers)


def new_and_failing(desk: Desk, answers: Answers, **fields: Any) -> Verdict:
    desk.case("new", **fields)
    return desk.judge({**answers, "new": MISS})


def one_case(desk: Desk, answers: Answers) -> Verdict:
    desk.cases = []
    desk.case("only")
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    desk.accept({"only": HIT})
    desk.gates = FREE + 'contract = {tolerance = 0.02, rule = "significant"}'
    return desk.judge({"only": HIT})


def slice_fell(desk: Desk, answers: Answers, min_n: int) -> Verdict:
    for n in range(COUNT):
        row = next(row for row in desk.cases if row["id"] == f"q{n:03d}")
        desk.case(
            **{"name": row["id"], **{k: v for k, v in row.items() if k not in ("id", "query")}}, topic="a" if n < 40 else "b"
        )
    desk.settings += f'[[slice]]\nby = "topic"\nmetric = "contract"\ntolerance = 0.01\nlevel = "critical"\nmin_n = {min_n}\n'
    desk.gates = "newly_failing = {ceiling = 1.0}\ncontract = {tolerance = 0.5}"
    return desk.judge({**answers, "q005": MISS})


def slice_edited(desk: Desk, answers: Answers) -> Verdict:
    """All cases of a small language edited, well inside the ten percent: its slice was compared with nothing."""
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    small = [f"q{n:03d}" for n in range(200, 220)]
    for case in small:
        desk.case(case, language="pt")
    desk.accept(answers)
    desk.settings += '[[slice]]\nby = "language"\nmetric = "contract"\ntolerance = 0.01\nlevel = "critical"\n'
    for case in small:
        desk.case(case, language="pt", query="another question?")
    return desk.judge(answers)


def acceptance(desk: Desk, answers: Answers, text: str, failing: int) -> Verdict:
    desk.settings += f"[acceptance]\n{text}\n"
    desk.gates = "newly_failing = {ceiling = 1.0}\ncontract = {tolerance = 1.0}"
    return desk.judge(some(answers, failing + 2, MISS) | {"q000": HIT, "q001": filler("c0", "c9")})


Way = Callable[[Desk, Answers], Verdict]
FREE = "newly_failing = {ceiling = 1.0}\n"
WAYS: dict[str, tuple[Way, str]] = {
    "identical runs": (lambda d, a: d.judge(a), "PASS"),
    "one question raised": (lambda d, a: d.judge(a | {"q005": "raised"}), "BLOCK"),
    "every question raised": (lambda d, a: d.judge(some(a, COUNT, "raised")), "ERROR"),
    "one fifth raised": (lambda d, a: d.judge(some(a, 48, "raised")), "BLOCK"),
    "one more than a fifth raised": (lambda d, a: d.judge(some(a, 49, "raised")), "ERROR"),
    "an answer too late": (lambda d, a: d.judge(a | {"q005": "timeout"}), "BLOCK"),
    "a malformed answer": (lambda d, a: d.judge(a | {"q005": "malformed"}), "BLOCK"),
    "nothing returned": (lambda d, a: d.judge(a | {"q005": []}), "BLOCK"),
    "nothing returned to anyone": (lambda d, a: d.judge(some(a, COUNT, [])), "BLOCK"),
    "a case missing from the run": (lambda d, a: d.judge({k: v for k, v in a.items() if k != "q005"}), "ERROR"),
    "a NaN among the scores": (lambda d, a: spoil_exam(d, a, value=float("nan")), "ERROR"),
    "an infinite score": (lambda d, a: spoil_exam(d, a, value=float("inf")), "ERROR"),
    "a case missing from the baseline": (baseline_without_a_case, "InputError"),
    "a metric the run lacks": (lambda d, a: baseline_with(d, a, '"ndcg": 1', '"gone": 1'), "InputError"),
    "a baseline of another schema": (lambda d, a: baseline_with(d, a, '"schema": 2', '"schema": 1'), "InputError"),
    "an empty golden set": (nothing_asked, "InputError"),
    "only no_match": (only_no_match, "INCONCLUSIVE"),
    "no gates": (lambda d, a: gates(d, a, 'newly_failing = {ceiling = 1.0, level = "advisory"}'), "INCONCLUSIVE"),
    "all gates advisory": (
        lambda d, a: gates(d, a, 'newly_failing = {ceiling = 1.0, level = "advisory"}\n'
                           'contract = {tolerance = 0.02, level = "advisory"}'), "INCONCLUSIVE"),
    "only a gate that looks at no gold": (
        lambda d, a: gates(d, a, 'newly_failing = {ceiling = 1.0, level = "advisory"}\nredundancy = {ceiling = 1.0}'),
        "INCONCLUSIVE"),
    "a gate on what was not measured": (lambda d, a: gates(d, a, "false_answer = {ceiling = 0.5}"), "INCONCLUSIVE"),
    "a lower-is-better metric rises": (
        lambda d, a: (setattr(d, "gates", FREE + "failing = {tolerance = 0.02}"), d.judge(some(a, 12, MISS)))[1], "BLOCK"),
    "the mean hardly moves and one case fails": (lambda d, a: d.judge(a | {"q005": MISS}), "BLOCK"),
    "the failing case edited": (edit_the_failing, "BLOCK"),
    "60 of 240 edited": (lambda d, a: edit(d, a, *[f"q{n:03d}" for n in range(100, 160)]), "INCONCLUSIVE"),
    "a canary removed": (lambda d, a: remove(d, a, "q000"), "BLOCK"),
    "a canary edited": (lambda d, a: edit(d, a, "q000"), "BLOCK"),
    "a tier-gold case edited": (lambda d, a: edit(d, a, "q001"), "BLOCK"),
    "a tier-gold case removed": (lambda d, a: remove(d, a, "q001"), "BLOCK"),
    "an allowance that ended yesterday": (lambda d, a: allowed(d, a, dt.date(2026, 5, 31)), "BLOCK"),
    "an allowance on its last day": (lambda d, a: allowed(d, a, dt.date(2026, 6, 1)), "PASS"),
    "an allowance for another case": (lambda d, a: allowed(d, a, dt.date(2027, 1, 1), "q006"), "BLOCK"),
    "an allowance for nobody": (lambda d, a: allowed(d, a, dt.date(2027, 1, 1), "q999"), "InputError"),
    "gold gone from the knowledge base": (gold_gone, "BLOCK"),
    "a card rejected": (rejected_card, "BLOCK"),
    "a new case failing": (new_and_failing, "WARN"),
    "a new canary failing": (lambda d, a: new_and_failing(d, a, canary=True), "BLOCK"),
    "a fall of exactly the tolerance": (
        lambda d, a: (setattr(d, "gates", FREE + "contract = {tolerance = 0.05}"), d.judge(some(a, 14, MISS) | {
            "q000": HIT, "q001": filler("c0", "c9")}))[1], "PASS"),
    "a fall of a hair more": (
        lambda d, a: (setattr(d, "gates", FREE + "contract = {tolerance = 0.0499999}"), d.judge(some(a, 14, MISS) | {
            "q000": HIT, "q001": filler("c0", "c9")}))[1], "BLOCK"),
    "a suite with one case": (one_case, "INCONCLUSIVE"),
    "a rule no such set can decide": (
        lambda d, a: gates(d, a, FREE + 'contract = {tolerance = 0.02, rule = "significant"}'), "INCONCLUSIVE"),
    "an interval that excludes nothing": (
        lambda d, a: gates(d, a, FREE + 'contract = {tolerance = 0.001, rule = "noninferior"}'), "INCONCLUSIVE"),
    "an interval that excludes the fall": (
        lambda d, a: gates(d, a, FREE + 'contract = {tolerance = 0.05, rule = "noninferior"}'), "PASS"),
    "a significant fall": (
        lambda d, a: (setattr(d, "gates", FREE + 'contract = {tolerance = 0.04, rule = "significant"}'),
                      d.judge(some(a, 40, MISS) | {"q000": HIT}))[1], "BLOCK"),
    "fewer cases than a gate needs": (lambda d, a: gates(d, a, FREE + "contract = {tolerance = 0.02, min_n = 241}"),
                                      "INCONCLUSIVE"),
    "a slice fell": (lambda d, a: slice_fell(d, a, 30), "BLOCK"),
    "a slice too small to block": (lambda d, a: slice_fell(d, a, 41), "PASS"),
    "a slice whose cases were all edited": (slice_edited, "INCONCLUSIVE"),
    "two lines for one figure": (
        lambda d, a: gates(d, a, 'contract = {tolerance = 0.5}\n"contract@3" = {floor = 0.1}'), "InputError"),
    "quality below what is demanded": (lambda d, a: acceptance(d, a, "quality = 0.99", 10), "BLOCK"),
    "more failing than allowed": (lambda d, a: acceptance(d, a, "quality = 0.5\nfailing_share = 0.01", 10), "BLOCK"),
    "failing cases nobody explained": (lambda d, a: acceptance(d, a, "quality = 0.5", 10), "WARN"),
    "a baseline older than allowed": (lambda d, a: (setattr(d, "today", dt.date(2026, 12, 1)), d.judge(a))[1], "WARN"),
}  # fmt: skip
EXITS = {"PASS": 0, "WARN": 0, "BLOCK": 1, "INCONCLUSIVE": 3, "ERROR": 4, "InputError": 2}


@pytest.mark.parametrize("name", WAYS)
def test_a_way_to_stay_green_by_accident(name: str, desk: Desk, answers: Answers) -> None:
    way, expected = WAYS[name]
    if expected == "InputError":
        with pytest.raises(KbgateError) as refused:
            way(desk, answers)
        assert isinstance(refused.value, InputError)
        assert refused.value.exit_code == EXITS[expected]
        return
    verdict = way(desk, answers)
    said = [f"{r.level}: {r.sentence}" for r in verdict.reasons]
    if name == "an allowance on its last day":
        assert (verdict.name, len(said)) == ("PASS", 1), said
        assert "is in force until 2026-06-01" in said[0]
        return
    assert (verdict.name, verdict.exit_code) == (expected, EXITS[expected]), said


def test_there_are_more_than_thirty() -> None:
    assert len(WAYS) >= 30


def test_the_friday_story(desk: Desk) -> None:
    """A mean of 0.96, and one case newly fails: the gate blocks and its first line names the case."""
    for n in range(200):
        desk.case(f"q{n:03d}")
    given: Answers = {f"q{n:03d}": MISS if n >= 192 else HIT for n in range(200)}
    desk.accept(given)
    friday = given | {"q005": MISS, "q199": HIT}
    own = desk.exam(friday).comparison.figures.query("metric == 'contract@3' and slice == ''").iloc[0]
    assert (own["current"], own["delta"]) == (0.96, 0.0)
    verdict = desk.judge(friday)
    assert (verdict.name, verdict.exit_code) == ("BLOCK", 1)
    assert verdict.reasons[0].sentence == "1 case newly failing: q005"


def test_the_fast_subset_opens_no_baseline(desk: Desk, answers: Answers) -> None:
    evaluation = desk.evaluation({"q000": HIT}, mode="fast")
    with pytest.raises(Refused, match="never from the fast subset"):
        write_baseline(evaluation, "r", False)


def test_every_metric_that_judges_gold_loses_nothing(desk: Desk, answers: Answers) -> None:
    """A figure a case had and has no longer counts as the worst it could be, in both directions."""
    figures = desk.exam(some(answers, 10, "raised")).comparison.figures
    for part in METRICS.values():
        if part.judges_gold and part.stored:
            row = figures.query(f"metric == '{part.key(3)}' and slice == ''").iloc[0]
            assert row["n"] == COUNT, part.name
