from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.results import Compared, Comparison
from kbgate.tasks.tables import Figure, Hits
from tests.conftest import edit_lines, last_verdict
from tests.exams import Desk, filler

HIT, NEAR, MISS = filler("c0"), filler("c1", "c2", "c3", "c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")


def figure(comparison: Comparison, key: str = "contract@3", part: str = "") -> Compared:
    (row,) = (row for row in comparison.figures if (row.lane, row.figure, row.slice) == ("exact", Figure.parse(key), part))
    return row


def changes(comparison: Comparison) -> dict[str, str]:
    return {change.case.id: str(change.kind) for change in comparison.changes}


def test_means_are_over_the_same_cases_and_say_their_n(desk: Desk) -> None:
    for name in "abcd":
        desk.case(name, language="en" if name < "c" else "es")
    desk.accept({"a": HIT, "b": HIT, "c": MISS, "d": HIT})
    comparison = desk.exam({"a": HIT, "b": MISS, "c": HIT, "d": HIT}).comparison
    row = figure(comparison)
    assert (row.baseline, row.current, row.delta, row.n) == (0.75, 0.75, 0.0, 4)
    assert (row.wins, row.ties, row.losses) == (1, 2, 1)
    assert figure(comparison, part="language=en").delta == -0.5
    assert figure(comparison, part="language=es").delta == 0.5
    assert changes(comparison) == {"b": "newly_failing", "c": "newly_passing"}


def test_ranks_then_and_now_are_told(desk: Desk) -> None:
    desk.case("a")
    desk.accept({"a": HIT})
    (row,) = desk.exam({"a": MISS}).comparison.changes
    assert (row.then, row.now) == ({"c0": 1}, {"c0": 6})


def test_a_fall_inside_the_slack_slips_unless_the_case_is_protected(desk: Desk) -> None:
    desk.cards[9]["tier"] = "gold"
    desk.case("plain")
    desk.case("canary", canary=True)
    desk.case("curated", expected=["c0", "c9"])
    both = filler("c0", "c9")
    desk.accept({"plain": HIT, "canary": HIT, "curated": both})
    comparison = desk.exam({"plain": NEAR, "canary": NEAR, "curated": filler("c1", "c2", "c9", "c0")}).comparison
    assert changes(comparison) == {"plain": "slipped", "canary": "newly_failing", "curated": "newly_failing"}


def test_new_removed_and_edited_cases_are_listed_and_never_averaged_in(desk: Desk) -> None:
    for n in range(20):
        desk.case(f"q{n:02d}")
    desk.accept({f"q{n:02d}": HIT for n in range(20)})
    desk.cases = [c for c in desk.cases if c["id"] != "q00"]
    desk.case("q01", query="asked otherwise?")
    desk.case("new")
    comparison = desk.exam({**{f"q{n:02d}": HIT for n in range(2, 20)}, "q01": MISS, "new": MISS}).comparison
    assert (comparison.new, comparison.removed, comparison.edited) == (("new",), ("q00",), ("q01",))
    assert figure(comparison).n == 18
    assert figure(comparison).delta == 0
    assert changes(comparison) == {"q01": "newly_failing", "new": "unbaselined_failing"}
    assert comparison.incomparable == ()


def test_gold_that_its_asker_may_no_longer_see_is_a_loss(desk: Desk) -> None:
    desk.cards[0]["tier"] = "silver"
    desk.case("a", entitled={"tier": "silver"})
    desk.case("b", gold="c1")
    desk.accept({"a": ["c0"], "b": filler("c1")})
    desk.cards[0]["tier"] = "gold"
    comparison = desk.exam({"a": [], "b": filler("c1")}).comparison
    assert changes(comparison) == {"a": "newly_failing"}
    assert (figure(comparison).current, figure(comparison).n) == (0.5, 2)


def test_without_a_baseline_the_figures_stand_alone(desk: Desk) -> None:
    desk.case("a")
    comparison = desk.exam({"a": HIT}).comparison
    assert figure(comparison).current == 1.0
    assert figure(comparison).baseline is None
    assert not comparison.changes


@pytest.mark.parametrize(("settings", "said"), [("top_k = 5\nk_values = [1, 3]", "top_k was 3 in the baseline and is 5 now")])
def test_a_changed_k_cannot_be_compared(settings: str, said: str, desk: Desk) -> None:
    desk.case("a")
    desk.accept({"a": HIT})
    desk.settings = settings
    comparison = desk.exam({"a": HIT}).comparison
    assert said in comparison.incomparable
    assert figure(comparison, "contract@5").baseline is None


def test_a_fast_run_is_compared_with_the_same_rows(desk: Desk) -> None:
    for name in "abcd":
        desk.case(name)
    desk.accept({"a": HIT, "b": MISS, "c": HIT, "d": HIT})
    comparison = desk.exam({"a": HIT, "b": MISS}, mode="fast").comparison
    assert (figure(comparison).baseline, figure(comparison).n) == (0.5, 2)
    assert comparison.removed == ()


def test_lanes_are_compared_only_over_the_same_cases(medication: Path, kbgate: Callable[..., int], home: Path) -> None:
    def dense() -> list[Any]:
        figures = last_verdict(home)["figures"]
        return [f["delta"] for f in figures if (f["lane"], f["metric"]) == ("dense", "contract@5")]

    assert kbgate("evaluate", medication) == 0
    assert dense() == [0]
    edit_lines(medication / "golden.jsonl", lambda c: {**c, "query": "?!"} if c["id"] == "n-bike" else c)
    assert kbgate("evaluate", medication) == 0
    assert dense() == [None]


@pytest.mark.parametrize(
    "hits",
    [
        [("c1", 0.9), ("c1", 0.8), ("c0", 0.7)], [("c0", 0.9), ("c0", 0.8)],
        [("c1", 0.9), ("c0", 0.9), ("c1", 0.95), ("c2", 0.1)],
    ],
)  # fmt: skip
def test_an_id_that_comes_twice_counts_at_its_first_place(desk: Desk, hits: list[tuple[str, float]]) -> None:
    desk.case("a")
    first = {name: score for name, score in reversed(hits)}
    once = sorted(first.items(), key=lambda pair: hits.index(pair))
    given, wanted = desk.exam({"a": Hits.of(hits)}).scores, desk.exam({"a": Hits.of(once)}).scores
    assert given.of("exact").of_case("a") == wanted.of("exact").of_case("a")
    assert given.placements == wanted.placements


@pytest.mark.parametrize("similar", [{}, {"a": 0.995}])
def test_a_limit_that_nothing_reaches_is_judged(desk: Desk, similar: dict[str, float]) -> None:
    for name in "ab":
        desk.case(name)
    desk.case("n", kind="no_match")
    desk.accept({"a": HIT, "b": HIT, "n": HIT})
    desk.retrieval = 'method = "exact"\nmin_similarity = 0.99\n'
    exam = desk.exam({name: Hits.of([("c0", similar[name])] if name in similar else []) for name in "abn"})
    assert figure(exam.comparison, "false_refusal").current == 1 - len(similar) / 2
    assert {"a", "b"} - set(similar) == {name for name, kind in changes(exam.comparison).items() if kind == "newly_failing"}
