from __future__ import annotations

import pytest

from kbgate.tasks.domain import Outcome
from kbgate.tasks.metrics import AGGREGATES, Measured
from kbgate.tasks.results import Answer, Run


def run(count: int, outcome: Outcome = Outcome.ANSWERED) -> Run:
    answers = {
        f"q{n}": Answer(outcome, float(n + 1), 1, lane_ms={"dense": 2.0 * (n + 1), "exact": 0.5 * (n + 1)})
        for n in range(count)
    }
    return Run("hybrid", answers, {}, exact="exact")


def figures(name: str, given: Run) -> list[Measured]:
    return list(AGGREGATES[name].measure(given, {}))


def test_percentiles_by_stage_with_their_n() -> None:
    assert figures("latency_p50", run(3)) == [Measured("dense", 4.0, 3), Measured("exact", 1.0, 3), Measured("hybrid", 2.0, 3)]
    assert figures("latency_ratio", run(100)) == [Measured("hybrid", 2.0, 100)]


@pytest.mark.parametrize(("name", "least"), [("latency_p95", 20), ("latency_p99", 100), ("latency_ratio", 100)])
def test_a_tail_is_not_printed_of_too_few(name: str, least: int) -> None:
    assert figures(name, run(least - 1)) == []
    assert figures(name, run(least)) != []


def test_a_question_that_failed_has_no_latency() -> None:
    assert figures("latency_p50", run(5, Outcome.TIMEOUT)) == []
