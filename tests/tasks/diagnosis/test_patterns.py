"""What many failures have in common is told, and what they have not is not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kbgate.tasks.diagnosis.patterns import patterns_of
from kbgate.tasks.domain import Exam
from kbgate.tasks.findings import Finding
from kbgate.tasks.index.fingerprint import pipeline_of
from tests.exams import Desk, filler


def found(cases: list[str], cause: str = "displaced", culprit: str = "new") -> list[Finding]:
    return [Finding(case, "c0", cause, "said", True, (culprit,)) for case in cases]


def names(exam: Exam, findings: list[Finding], lines: list[dict[str, Any]] | None = None) -> dict[str, str]:
    return {pattern.name: pattern.sentence for pattern in patterns_of(exam, findings, lines or [])}


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
    assert set(names(exam, found(["q00", "q01"], "unknown"))) == {"drift"}


def test_a_whole_domain(exam: Exam) -> None:
    told = names(exam, found(["q00", "q01", "q02", "q03"], "settings"))
    assert told["domain"] == "4 of 4 cases of domain 'travel' fell"
    assert "domain" not in names(exam, found(["q05", "q06", "q07"], "settings"))


def test_only_numeric_questions(exam: Exam) -> None:
    told = patterns_of(exam, found(["q00", "q01", "q02", "q04"], "settings"), [])
    numeric = next(pattern for pattern in told if pattern.name == "numeric")
    assert (numeric.n, numeric.share) == (4, 1.0)
    assert "tables" in numeric.look_first
    assert "numeric" not in names(exam, found(["q00", "q08", "q09", "q10"], "settings"))


def test_the_last_ingest(exam: Exam) -> None:
    told = patterns_of(exam, [*found(["q00", "q05", "q06"]), *found(["q07"], "removed", "c1")], [])
    ingest = next(pattern for pattern in told if pattern.name == "last_ingest")
    assert (ingest.n, ingest.share, ingest.look_first) == (3, 0.75, "the last ingest: new")


def test_a_fall_without_a_change_is_drift_and_one_after_a_change_is_not(desk: Desk, exam: Exam) -> None:
    assert "drift" in names(exam, found(["q00"], "validity"))
    desk.cards[5]["text"] = "changed"
    changed = desk.exam({f"q{n:02d}": filler("c0", "c1") for n in range(12)})
    assert "drift" not in names(changed, found(["q00"], "validity"))


def test_a_fall_after_a_changed_setting_is_no_drift(exam: Exam) -> None:
    assert exam.baseline is not None
    for pipeline, drifts in ((pipeline_of(exam.suite), True), ({"chunking": {"size": 1}}, False)):
        provenance = {**exam.baseline.summary["provenance"], "pipeline": pipeline}
        baseline = dataclasses.replace(exam.baseline, summary={**exam.baseline.summary, "provenance": provenance})
        told = names(dataclasses.replace(exam, baseline=baseline), found(["q00"], "lost_by_index"))
        assert ("drift" in told) is drifts


def test_a_slow_decline_is_told_from_one_large_step(exam: Exam) -> None:
    def history(*means: float) -> list[dict[str, Any]]:
        return [{"mode": "full", "means": {"contract@3": {"mean": mean, "n": 12}}} for mean in means]

    assert "decline" in names(exam, [], history(0.90, 0.89, 0.885, 0.88, 0.87, 0.865))
    assert "decline" not in names(exam, [], history(0.90, 0.90, 0.90, 0.90, 0.90, 0.80))
    assert "decline" not in names(exam, [], history(0.90, 0.89, 0.895, 0.88, 0.87, 0.865))
    assert "decline" not in names(exam, [], history(0.90, 0.89))
