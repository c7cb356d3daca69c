"""A metric is one function: computed, stored, compared, gated, reported and listed; a figure that is no number is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping

import pytest

from kbgate.tasks.metrics import METRICS, Judged, Measured, aggregate, metric
from kbgate.tasks.results import Run
from tests.parts.school import School


def bring_first_gold(version: int = 1) -> None:
    @metric("first_gold", source="tests", version=version)
    def first_gold(case: Judged, k: int) -> float | None:
        """1 if the first card is gold, else 0."""
        return float(case.ranking[:1] in {(card,) for card in case.grades}) if case.grades else None


def bring_odd(value: float | None) -> None:
    @metric("odd", source="tests", judges_gold=False)
    def odd(case: Judged, k: int) -> float | None:
        """No number at all."""
        return value


def test_a_metric_that_is_gated_by_its_new_name(school: School, capsys: pytest.CaptureFixture[str]) -> None:
    bring_first_gold()
    school.gates["first_gold"] = "{tolerance = 0.1, level = 'critical'}"
    school.walk()
    assert "limits.first_gold" in {reason["check"] for reason in school.verdict["reasons"]}
    assert "| first_gold@3 | 1.000 | 0.875 |" in school.report
    summary = json.loads((school.folder / "baseline.json").read_text())
    assert summary["means"]["first_gold@3"] == {"mean": 1.0, "n": 8}
    assert summary["metric_versions"]["first_gold"] == 1
    capsys.readouterr()
    assert school.kbgate("metrics") == 0
    assert "first_gold@k" in capsys.readouterr().out


def test_a_metric_that_nothing_judges_changes_no_verdict(school: School) -> None:
    school.accept()
    assert school.run("evaluate") == 0
    before, policy = school.verdict, school.policy
    bring_first_gold()
    assert school.policy == policy
    assert school.run("evaluate") == 0
    after = school.verdict
    assert {key: after[key] for key in ("verdict", "reasons", "fingerprints")} == {
        key: before[key] for key in ("verdict", "reasons", "fingerprints")
    }
    assert school.figures("first_gold@3")[0]["current"] == 1.0
    assert school.figures("first_gold@3")[0]["baseline"] is None
    assert school.run("promote") == 0


def test_a_metric_that_is_judged_is_part_of_the_policy_with_its_version(school: School) -> None:
    bring_first_gold()
    school.write()
    plain = school.policy
    school.gates["first_gold"] = "{floor = 0.5}"
    school.write()
    gated = school.policy
    METRICS.remove("first_gold")
    bring_first_gold(version=2)
    assert len({plain, gated, school.policy}) == 3


def test_a_metric_that_is_taken_out_is_missed(school: School, capsys: pytest.CaptureFixture[str]) -> None:
    bring_first_gold()
    school.accept()
    METRICS.remove("first_gold")
    assert school.run("evaluate") == 3
    assert "metric first_gold is in the baseline and is no longer computed" in school.verdict["reasons"][0]["sentence"]
    school.gates["first_gold"] = "{floor = 0.5}"
    school.write()
    capsys.readouterr()
    assert school.run("evaluate") == 2
    assert "gates.first_gold: unknown 'first_gold'" in capsys.readouterr().err


def test_a_metric_that_is_defined_for_no_case_is_absent_everywhere(school: School) -> None:
    bring_odd(None)
    school.accept()
    assert "odd" not in (school.folder / "baseline.json").read_text().replace('"odd": 1', "")
    assert school.run("evaluate") == 0
    assert [(row["current"], row["n"]) for row in school.figures("odd@3")] == [(None, 0)]
    assert "odd" not in school.report
    assert school.kbgate("verify", school.newest) == 0
    school.gates["odd"] = "{floor = 0.5}"
    school.write()
    assert school.run("evaluate") == 3
    assert school.verdict["reasons"][0]["sentence"] == "odd@3: not measured (n = 0)"


@pytest.mark.parametrize(
    ("value", "method"), [(math.nan, "bm25"), (math.inf, "bm25"), (math.nan, "hybrid"), (-math.inf, "hybrid")]
)
def test_a_metric_that_gives_no_number_is_refused(value: float, method: str, school: School) -> None:
    school.method = method
    school.accept()
    bring_odd(value)
    assert school.run("evaluate") == 4
    reason = school.verdict["reasons"][0]
    assert (reason["check"], reason["level"]) == ("finite", "error")
    assert reason["sentence"] == "figures that are not finite: odd@1, odd@3"
    assert all(row["current"] is None for row in school.figures("odd@3"))
    assert school.kbgate("verify", school.newest) == 0
    assert school.run("promote") == 1


@pytest.mark.parametrize("value", [0.25, math.nan, math.inf])
def test_a_figure_of_a_whole_run(value: float, school: School) -> None:
    @aggregate("answered", source="tests")
    def answered(run: Run, has_gold: Mapping[str, bool]) -> Iterator[Measured]:
        """A figure of the run."""
        yield Measured(run.method, value, len(run.answers))

    school.gates["answered"] = "{floor = 0.1}"
    if math.isfinite(value):
        school.walk()
        assert school.figures("answered")[0]["current"] == value
        return
    school.write()
    assert school.run("evaluate") == 4
    assert school.verdict["reasons"][0]["sentence"] == "figures that are not finite: answered"
    assert school.kbgate("verify", school.newest) == 0
