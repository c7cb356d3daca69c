"""What was lost since the anchor, whatever became of its cases and however often the baseline was updated on the way."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbgate.tasks.comparison.anchored import worse
from kbgate.tasks.metrics import METRICS
from kbgate.tasks.tables import Figure
from tests.exams import Desk, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c0")
FATES = {
    "passes": 0, "fails": 1, "removed": 1, "renamed": 0, "renamed and fails": 1, "edited": 0, "edited and fails": 1,
    "edited away": 1,
}  # fmt: skip
"""What may become of a case, and whether it is lost by that; edited away: it passes now, and would not have as it was."""
N = 8
STEP = st.lists(st.sampled_from([*FATES]), min_size=N, max_size=N).filter(lambda fates: {*fates} != {"removed"})
"""Something is left of the first baseline's cases: one that shares none with a run cannot be compared, so not accepted."""


def suffer(desk: Desk, names: dict[int, str], number: int, fate: str, step: int) -> None:
    """Let a case meet its fate, under the name it has by now."""
    query = f"q{number:02d}?"
    desk.cases = [case for case in desk.cases if case["id"] != names[number]]
    if fate.startswith("renamed"):
        names[number] = f"q{number:02d}-{step}"
    if fate != "removed":
        desk.case(names[number], query=query + " " * (step + 1) * fate.startswith("edited"))


@pytest.mark.slow
@settings(max_examples=15)
@given(steps=st.lists(STEP, min_size=1, max_size=3), new=st.integers(0, 2), easy=st.integers(1, 3))
def test_only_what_became_of_each_case_in_the_end_counts(steps: list[list[str]], new: int, easy: int) -> None:
    """Not how often the baseline was updated in between, nor how many easy cases came in."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        desk.gates = "newly_failing = {ceiling = 1.0}\ncontract = {tolerance = 0.99}"
        for n in range(N):
            desk.case(f"q{n:02d}")
        desk.accept({f"q{n:02d}": HIT for n in range(N)})
        names = {n: f"q{n:02d}" for n in range(N)}
        for n in range(new + easy):
            desk.case(f"new{n}")
        for step, fates in enumerate(steps):
            for n, fate in enumerate(fates):
                suffer(desk, names, n, fate, step)
            failing = {n for n, fate in enumerate(fates) if fate.endswith("fails")}
            rankings = {case["id"]: MISS if number(case["id"]) in failing else HIT for case in desk.cases}
            rankings |= {f"new{n}": MISS if n < new else HIT for n in range(new + easy)}
            desk.earlier = {f"q{n:02d}": MISS if fate == "edited away" else HIT for n, fate in enumerate(fates)}
            expected = -(sum(map(FATES.__getitem__, fates)) + new) / (N + new)
            for _ in range(2):  # before it is accepted, and after
                since = desk.exam(rankings).comparison.figure("exact", Figure("contract", 3)).since_anchor
                assert since == pytest.approx(expected)
                desk.accept(rankings, accept_regression=True)


@pytest.mark.parametrize(("metric", "worst"), [("recall", 0.25), ("noise", 0.75)])
def test_the_worse_of_two_values_is_by_which_way_is_up(metric: str, worst: float) -> None:
    assert {worse(METRICS[metric], *pair) for pair in ((0.25, 0.75), (0.75, 0.25))} == {worst}


def number(case: str) -> int:
    """The number of a case of the anchor, -1 of a new one."""
    return int(case[1:3]) if case.startswith("q") else -1
