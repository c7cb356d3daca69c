"""What many failures have in common is told, and what they have not is not."""

from __future__ import annotations

import dataclasses
import datetime as dt

import pytest
from pydantic import JsonValue

from kbgate.tasks.conclusions import Code, Exam, VerdictName
from kbgate.tasks.diagnosis import patterns
from kbgate.tasks.diagnosis.patterns import patterns_of
from kbgate.tasks.domain import Mode
from kbgate.tasks.findings import Finding
from kbgate.tasks.index.fingerprint import pipeline_of
from kbgate.tasks.runs.history import SCHEMA, HistoryLine
from kbgate.tasks.runs.parts import PastMean
from kbgate.tasks.schema import Counts, Fingerprints
from tests.exams import Desk, filler

CALIBRATED = '[acceptance]\ncalibrated = {run = "r", date = 2026-05-01, noise = {1 = 0.5}}\n'


def findings(cases: list[str], cause: str = "displaced", culprit: str = "new") -> list[Finding]:
    return [Finding(case, "c0", cause, "a sentence", True, (culprit,)) for case in cases]


def names(exam: Exam, of: list[Finding], history: list[HistoryLine] | None = None) -> dict[str, str]:
    return {pattern.name: pattern.sentence for pattern in patterns_of(exam, of, history or [])}


def line(mean: float) -> HistoryLine:
    """A run of the suite by its contract."""
    return HistoryLine(
        schema=SCHEMA,
        suite="desk",
        run="20260601T023000Z-abcdef",
        time=dt.datetime(2026, 6, 1, 2, 30, tzinfo=dt.UTC),
        mode=Mode.FULL,
        method="exact",
        verdict=VerdictName.PASS,
        exit_code=0,
        code=Code.NONE,
        fingerprints=Fingerprints(index="f" * 16, golden="f" * 16, policy="f" * 16),
        kb="f" * 16,
        as_of=dt.date(2026, 6, 1),
        counts=Counts(cards=12, chunks=12, rows=12, cases=12),
        newly_failing=[],
        newly_passing=[],
        means={"contract@3": PastMean(mean=mean, n=12)},
    )


@pytest.fixture
def exam(desk: Desk) -> Exam:
    for n in range(12):
        desk.case(f"q{n:02d}", gold="c0" if n < 4 else "c1", numeric=n < 5)
    desk.cards[0]["domain"], desk.cards[1]["domain"] = "travel", "pay"
    desk.accept({f"q{n:02d}": filler("c0", "c1") for n in range(12)})
    return desk.exam({f"q{n:02d}": filler("c0", "c1") for n in range(12)})


def test_no_finding_makes_no_pattern(exam: Exam) -> None:
    assert names(exam, []) == {}


def test_two_failures_are_no_pattern(exam: Exam) -> None:
    assert set(names(exam, findings(["q00", "q01"], "unknown"))) == {"drift"}


def test_a_whole_domain(exam: Exam) -> None:
    sentences = names(exam, findings(["q00", "q01", "q02", "q03"], "settings"))
    assert sentences["domain"] == "4 of 4 cases of domain 'travel' fell"
    assert "domain" not in names(exam, findings(["q05", "q06", "q07"], "settings"))


def test_only_numeric_questions(exam: Exam) -> None:
    patterns = patterns_of(exam, findings(["q00", "q01", "q02", "q04"], "settings"), [])
    numeric = next(pattern for pattern in patterns if pattern.name == "numeric")
    assert (numeric.n, numeric.share) == (4, 1.0)
    assert "tables" in numeric.look_first
    assert "numeric" not in names(exam, findings(["q00", "q08", "q09", "q10"], "settings"))


def test_the_last_ingest(exam: Exam) -> None:
    patterns = patterns_of(exam, [*findings(["q00", "q05", "q06"]), *findings(["q07"], "removed", "c1")], [])
    ingest = next(pattern for pattern in patterns if pattern.name == "last_ingest")
    assert (ingest.n, ingest.share, ingest.look_first) == (3, 0.75, "the last ingest: new")


def test_one_question_that_passed_before_is_enough_for_the_last_ingest_and_one_that_did_not_is_none(desk: Desk) -> None:
    desk.case("q0")
    desk.case("q1")
    missed = filler("c1", "c2", "c3", "c0")
    desk.accept({"q0": filler("c0"), "q1": missed})
    exam = desk.exam({"q0": missed, "q1": missed})
    assert names(exam, findings(["q0", "q1"]))["last_ingest"] == "1 passed before and nothing changed in their cards"
    assert "last_ingest" not in names(exam, findings(["q1"]))


SIX = {"domain", "numeric", "tier_gold", "last_ingest", "decline", "generic"}
"""The patterns that a knowledge base is read by, of those there are."""


def test_each_of_the_six_is_told_by_its_own_rule_and_by_none_else(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """All six at once in one exam; whichever rule is taken away, exactly its sentence is missing."""
    desk.cards[9] |= {"domain": "travel", "tier": "gold"}
    for n in range(40):
        desk.case(f"q{n:02d}", gold="c9" if n < 3 else "c0", numeric=n < 3)
    desk.accept({f"q{n:02d}": filler("c9" if n < 3 else "c0") for n in range(40)})
    desk.settings += CALIBRATED.replace("[acceptance]\n", "[acceptance]\nfailing_share = 0.1\n")
    exam = desk.exam({f"q{n:02d}": filler("c1", "c2", "c3", "c9") if n < 3 else filler("c0") for n in range(40)})
    fell, history = findings(["q00", "q01", "q02"]), [line(0.99 - n / 100) for n in range(6)]
    told = names(exam, fell, history)
    assert set(told) == SIX
    for name in SIX:
        with monkeypatch.context() as patch:
            patch.delitem(patterns._RULES, name)
            assert names(exam, fell, history) == {other: told[other] for other in SIX - {name}}


def test_a_fall_without_a_change_is_drift_and_one_after_a_change_is_not(desk: Desk, exam: Exam) -> None:
    assert "drift" in names(exam, findings(["q00"], "validity"))
    desk.cards[5]["text"] = "changed"
    changed = desk.exam({f"q{n:02d}": filler("c0", "c1") for n in range(12)})
    assert "drift" not in names(changed, findings(["q00"], "validity"))


def test_a_fall_after_a_changed_setting_is_no_drift(exam: Exam) -> None:
    assert exam.baseline is not None
    otherwise: dict[str, dict[str, JsonValue]] = {"chunking": {"size": 1}}
    for pipeline, drifts in ((pipeline_of(exam.suite), True), (otherwise, False)):
        provenance = exam.baseline.summary.provenance.model_copy(update={"pipeline": pipeline})
        summary = exam.baseline.summary.model_copy(update={"provenance": provenance})
        baseline = dataclasses.replace(exam.baseline, summary=summary)
        sentences = names(dataclasses.replace(exam, baseline=baseline), findings(["q00"], "lost_by_index"))
        assert ("drift" in sentences) is drifts


def test_a_slow_decline_is_told_from_one_large_step(exam: Exam) -> None:
    def history(*means: float) -> list[HistoryLine]:
        return [line(mean) for mean in means]

    assert "decline" in names(exam, [], history(0.90, 0.89, 0.885, 0.88, 0.87, 0.865))
    assert "decline" not in names(exam, [], history(0.90, 0.90, 0.90, 0.90, 0.90, 0.80))
    assert "decline" not in names(exam, [], history(0.90, 0.89, 0.895, 0.88, 0.87, 0.865))
    assert "decline" not in names(exam, [], history(0.90, 0.89))


@pytest.mark.parametrize(("others", "expected"), [(2, True), (3, False)])
def test_what_most_passing_cases_share_too_is_no_pattern(others: int, expected: bool, desk: Desk) -> None:
    """All four that fell ask for a number; so do two, or three, of the eight that pass: half of all, or more."""
    for n in range(12):
        desk.case(f"q{n:02d}", numeric=n < 4 + others)
    exam = desk.exam({f"q{n:02d}": filler("c0") for n in range(12)})
    assert ("numeric" in names(exam, findings([f"q{n:02d}" for n in range(4)], "settings"))) is expected


@pytest.mark.parametrize(("fell", "expected"), [(5, True), (6, False)])
def test_four_fifths_of_what_fell_must_share_it(fell: int, expected: bool, desk: Desk) -> None:
    """Four of five do, four of six do not."""
    for n in range(20):
        desk.case(f"q{n:02d}", numeric=n < 4)
    exam = desk.exam({f"q{n:02d}": filler("c0") for n in range(20)})
    assert ("numeric" in names(exam, findings([f"q{n:02d}" for n in range(fell)], "settings"))) is expected


def test_curated_answers_that_fall_together_are_told(desk: Desk) -> None:
    desk.cards[9]["tier"] = "gold"
    for n in range(12):
        desk.case(f"q{n:02d}", gold="c9" if n < 4 else "c0")
    exam = desk.exam({f"q{n:02d}": filler("c0") for n in range(12)})
    sentences = names(exam, findings(["q00", "q01", "q02"], "settings"))
    assert sentences["tier_gold"] == "3 of 3 that fell have a curated synthesis as gold"
    assert "tier_gold" not in names(exam, findings(["q05", "q06", "q07"], "settings"))


@pytest.mark.parametrize(("members", "expected"), [(5, True), (6, False)])
def test_a_domain_fell_when_four_fifths_of_it_did(members: int, expected: bool, desk: Desk) -> None:
    desk.cards[0]["domain"] = "travel"
    for n in range(12):
        desk.case(f"q{n:02d}", gold="c0" if n < members else "c1")
    exam = desk.exam({f"q{n:02d}": filler("c0") for n in range(12)})
    assert ("domain" in names(exam, findings(["q00", "q01", "q02", "q03"], "settings"))) is expected


def test_answers_found_among_more_noise(desk: Desk) -> None:
    """The gold of each at rank 2, then at rank 1 of 3: recall holds, and a third more of the top stands below it."""
    for n in range(4):
        desk.case(f"q{n}")
    desk.accept({f"q{n}": filler("c1", "c0") for n in range(4)})
    sentences = names(desk.exam({f"q{n}": filler("c0") for n in range(4)}), [])
    assert sentences["generic"] == "recall@3 holds while noise@3 rose by 0.333"
    assert "generic" not in names(desk.exam({f"q{n}": filler("c1", "c0") for n in range(4)}), [])
    assert "generic" not in names(desk.exam({f"q{n}": filler("c0") if n else filler("c1", "c2", "c3") for n in range(4)}), [])


@pytest.mark.parametrize(
    ("settings", "noisy", "failing", "expected"),
    [(CALIBRATED, 2, 0, True), (CALIBRATED, 1, 0, False), ("[acceptance]\n", 20, 0, False), ("", 20, 0, False),
     (CALIBRATED, 2, 1, True), (CALIBRATED, 2, 2, False)],
)  # fmt: skip
def test_noise_that_stands_is_told_though_it_did_not_rise(
    settings: str, noisy: int, failing: int, expected: bool, desk: Desk
) -> None:
    """As it was accepted: above what was calibrated for more than one in twenty, while their answers are found."""
    desk.settings += settings
    for n in range(20):
        desk.case(f"q{n:02d}")
    late, missed = filler("c1", "c2", "c0"), filler("c1", "c2", "c3", "c4", "c0")
    answers = {f"q{n:02d}": filler("c0") if n < noisy else missed if n >= 20 - failing else late for n in range(20)}
    desk.accept(answers, accept_regression=True)
    told = names(desk.exam(answers), []).get("generic")
    found = f"{20 - failing} of 20 questions find their answer, {noisy} of {20 - failing} among more noise than was calibrated"
    assert told == (found if expected else None)


def test_the_pattern_that_explains_most_stands_first_and_noise_explains_no_failure(desk: Desk) -> None:
    """Four newly failing of one domain among cases whose noise rose: the domain has a share, the noise has none."""
    for n in range(12):
        desk.case(f"q{n:02d}")
    desk.accept({f"q{n:02d}": filler("c1", "c0") for n in range(12)})
    exam = desk.exam({f"q{n:02d}": filler("c0") for n in range(12)})
    told = patterns_of(exam, findings(["q00", "q01", "q02"], "displaced"), [])
    assert [(pattern.name, pattern.n, pattern.share) for pattern in told] == [("last_ingest", 3, 1.0), ("generic", 12, 0.0)]
