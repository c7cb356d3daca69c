"""What is told of a run whose rankings are not made as the baseline's were, though nothing dropped."""

from __future__ import annotations

import dataclasses

import pytest

from kbgate.tasks.comparison.power import smallness
from kbgate.tasks.gate.verdict import judge
from kbgate.tasks.index.fingerprint import pipeline_of
from kbgate.tasks.schema import ModelIdentity, Provenance
from tests.exams import Desk, filler


def told(desk: Desk, weights: str = "a" * 64, **chunking: object) -> tuple[str, list[str]]:
    """The verdict, and what it says of settings, of a run made as the baseline was but for this."""
    desk.case("q")
    desk.accept({"q": filler("c0")})
    exam = desk.exam({"q": filler("c0")})
    assert exam.baseline is not None
    pipeline = pipeline_of(exam.suite)
    then = Provenance(model=ModelIdentity(name="m", weights="a" * 64), versions={}, commit=None, pipeline=pipeline)
    now = then.model_copy(
        update={
            "model": ModelIdentity(name="m", weights=weights),
            "pipeline": {**pipeline, "chunking": {**pipeline["chunking"], **chunking}},
        }
    )
    summary = exam.baseline.summary.model_copy(update={"provenance": then})
    exam = dataclasses.replace(exam, baseline=dataclasses.replace(exam.baseline, summary=summary), provenance=now)
    verdict = judge(exam)
    return verdict.name.value, [reason.sentence for reason in verdict.reasons if reason.check == "settings_changed"]


def test_what_is_made_as_it_was_is_told_nothing(desk: Desk) -> None:
    assert told(desk) == ("PASS", [])


def test_a_changed_chunker_is_told_in_a_green_report(desk: Desk) -> None:
    name, (sentence,) = told(desk, size=100)
    assert name == "PASS"
    assert sentence == "rankings are not made as in the baseline: chunking.size was 384 and is 100"


def test_other_weights_under_the_same_name_are_told(desk: Desk) -> None:
    assert told(desk, weights="b" * 64)[1] == [
        "rankings are not made as in the baseline: the weights of the model were aaaaaaaaaaaa and are bbbbbbbbbbbb"
    ]


@pytest.mark.parametrize(("cases", "small"), [(49, True), (50, False)])
def test_a_suite_below_fifty_cases_with_gold_is_told_it_is_small(cases: int, small: bool, desk: Desk) -> None:
    for n in range(cases):
        desk.case(f"q{n:02d}")
    desk.case("none", kind="no_match")
    exam = desk.exam({**{f"q{n:02d}": filler("c0") for n in range(cases)}, "none": []})
    assert bool(smallness(exam.golden)) is small
    assert not small or smallness(exam.golden).startswith(
        "A small suite: 49 of at least 50 cases with gold; one of them is 2.0"
    )
