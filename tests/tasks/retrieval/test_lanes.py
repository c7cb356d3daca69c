from __future__ import annotations

import math
import time

import pytest

from kbgate.tasks.domain import Outcome, Question, Ranked
from kbgate.tasks.retrieval.eligible import Eligible
from kbgate.tasks.retrieval.lanes import each, fault, roll_up, search_lane
from kbgate.tasks.tables import Hits, Rows


def index(rows: dict[str, list[str]]) -> Rows:
    fields = tuple({"n": float(n)} for n in range(len(rows)))
    chunks = tuple(tuple(f"{card}::00" for card in cards) for cards in rows.values())
    return Rows(tuple(rows), tuple(rows), ("",) * len(rows), fields, chunks, tuple(map(tuple, rows.values())))


def test_equal_rounded_scores_are_ordered_by_id() -> None:
    hits = Hits.ranked({"b": 0.5, "a": 0.5000000001, "c": 0.6})
    assert list(hits.pairs()) == [("c", 0.6), ("a", 0.5), ("b", 0.5)]


def test_a_card_scores_as_its_best_row_and_a_row_gives_all_its_cards() -> None:
    cards = {"r1": ("a",), "r2": ("a", "b"), "r3": ("c",)}
    hits = roll_up(Hits.of([("r1", 0.2), ("r2", 0.9), ("r3", 0.5)]), cards)
    assert list(hits.pairs()) == [("a", 0.9), ("b", 0.9), ("c", 0.5)]


def test_a_lane_is_asked_for_more_where_its_rows_are_too_few_cards() -> None:
    rows = {f"r{n:02d}": ["big"] for n in range(60)} | {f"s{n}": [f"card{n}"] for n in range(5)}
    asked: list[int] = []

    def ask(question: Question, count: int) -> Hits:
        asked.append(count)
        return Hits.of((row, 1 - place / 1000) for place, row in enumerate(rows)).head(count)

    answer = search_lane("dense", index(rows), 10, ask)([Question("?")], 5)[0]
    assert asked == [26, 36, 56, 96]
    assert answer.extended
    assert answer.lanes["dense"].ids == ("big", "card0", "card1", "card2", "card3", "card4")


def test_a_tie_at_the_depth_is_cut_by_id() -> None:
    rows = {f"r{n}": [f"c{n}"] for n in range(8)}
    search = search_lane("dense", index(rows), 3, lambda q, n: Hits.of((row, 0.5) for row in reversed(rows)))
    assert search([Question("?")], 2)[0].lanes["dense"].ids == ("c0", "c1", "c2")


@pytest.mark.parametrize(
    ("hits", "said"),
    [
        ([("r0", 1.0), ("r0", 0.9)], "twice"),
        ([("zz", 1.0)], "unknown id 'zz'"),
        ([("r0", math.nan)], "not a finite"),
        ([("r0", math.inf)], "not a finite"),
        ([("r0", 1.0)], ""),
    ],
)
def test_a_broken_answer_is_malformed(hits: list[tuple[str, float]], said: str) -> None:
    assert said in fault(Hits.of(hits), {"r0"})
    answer = search_lane("dense", index({"r0": ["a"]}), 3, lambda q, n: Hits.of(hits))([Question("?")], 1)[0]
    assert answer.outcome == (Outcome.MALFORMED if said else Outcome.ANSWERED)


def test_one_that_raises_stops_no_other_and_each_has_its_time() -> None:
    def answer(question: Question, k: int) -> Ranked:
        if question.text == "bad":
            raise RuntimeError("boom")
        time.sleep(0.002)
        return Ranked(Outcome.ANSWERED, {"x": Hits.of([("a", 1.0)])})

    outcomes = each(answer)([Question("good"), Question("bad"), Question("good")], 1)
    assert [a.outcome for a in outcomes] == [Outcome.ANSWERED, Outcome.RAISED, Outcome.ANSWERED]
    assert outcomes[1].detail == "RuntimeError: boom"
    assert outcomes[0].ms >= 2


def test_eligible_counts_rows_and_cards() -> None:
    eligible = Eligible(index({"r0": ["a", "b"], "r1": ["b"], "r2": ["c"]}))
    where = {"n": {"$lt": 2.0}}
    assert eligible.rows(where).tolist() == [True, True, False]
    assert eligible.cards(where) == 2
