"""When a subset decides a pull request, and when it must not: in memory, where search is exact."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.flows.pull_request import examine
from kbgate.tasks import exam
from kbgate.tasks.clock import Clock
from kbgate.tasks.conclusions import Evaluation
from kbgate.tasks.domain import Mode
from kbgate.tasks.inputs.subset import least_compared, select_fast
from kbgate.tasks.inputs.suite import load_suite
from tests.conftest import MEDICATION, edit_lines, read_lines, write_lines

Row = dict[str, Any]
NOW = dt.datetime(2026, 6, 1, 9, tzinfo=dt.UTC)


def examined(suite: Path, home: Path) -> tuple[Evaluation, Evaluation, str]:
    inputs = exam.load(load_suite(suite), home)
    clock = Clock.of(inputs.suite, NOW)
    return examine(inputs, exam.prepare(inputs, home), home, clock, exam.in_memory, limit=0)


def evaluated(suite: Path, home: Path) -> Evaluation:
    inputs = exam.load(load_suite(suite), home)
    clock = Clock.of(inputs.suite, NOW)
    return exam.evaluate(inputs, exam.prepare(inputs, home), inputs.golden.cases, home, clock, host=exam.in_memory, limit=0)


def places(suite: Path, count: int) -> None:
    """So many places in the subset."""
    lines = [line for line in (suite / "suite.toml").read_text().splitlines() if not line.startswith("fast")]
    (suite / "suite.toml").write_text("\n".join([lines[0], f"fast = {count}", *lines[1:]]) + "\n")


def easy_canaries(suite: Path, count: int) -> None:
    """Questions of the change's own that could not be easier: the title of a card, word for word."""
    cards = [card for card in read_lines(suite / "cards.jsonl") if card.get("language") == "en"][:count]
    rows = [
        {"id": f"easy-{n}", "query": card["title"], "language": "en", "canary": True, "must_cite_one_of": [card["id"]]}
        for n, card in enumerate(cards)
    ]
    write_lines(suite / "golden.jsonl", [*read_lines(suite / "golden.jsonl"), *rows])


def test_places_are_the_baselines_and_new_cases_come_on_top(medication: Path, home: Path) -> None:
    places(medication, 8)
    inputs = exam.load(load_suite(medication), home)
    before = set(select_fast(inputs.golden.cases, 8, inputs.baseline))
    easy_canaries(medication, 7)
    after = exam.load(load_suite(medication), home)
    fast = select_fast(after.golden.cases, 8, after.baseline)
    assert set(fast) - before == {f"easy-{n}" for n in range(7)}
    assert before <= set(fast)
    subset, deciding, why = examined(medication, home)
    if deciding is subset:
        assert len(set(subset.exam.comparison.common) & before) == len(before)
    else:
        assert why


def test_who_is_chosen_follows_the_accepted_name(medication: Path, home: Path) -> None:
    inputs = exam.load(load_suite(medication), home)
    chosen = sorted(select_fast(inputs.golden.cases, 8, inputs.baseline))
    edit_lines(medication / "golden.jsonl", lambda c: {**c, "id": f"z-{c['id']}"})
    renamed = exam.load(load_suite(medication), home)
    assert sorted(select_fast(renamed.golden.cases, 8, renamed.baseline)) == sorted(f"z-{name}" for name in chosen)


def test_fewer_compared_than_there_are_places_ask_the_full_set(medication: Path, home: Path) -> None:
    rows = [row["id"] for row in read_lines(medication / "baseline.cases.jsonl") if not (row["canary"] or row["tier_gold"])]
    edit_lines(medication / "golden.jsonl", lambda c: None if c["id"] == rows[0] else c)
    places(medication, 500)
    inputs = exam.load(load_suite(medication), home)
    assert inputs.baseline is not None
    assert least_compared(500, inputs.baseline) == len(inputs.baseline.cases)
    assert least_compared(8, inputs.baseline) == 8
    subset, deciding, why = examined(medication, home)
    assert deciding is not subset or deciding.exam.run.mode == Mode.FULL
    assert "are needed" in why
    assert deciding.exam.run.mode == Mode.FULL


def test_an_unchanged_tree_is_decided_by_the_subset(medication: Path, home: Path) -> None:
    places(medication, 8)
    subset, deciding, why = examined(medication, home)
    assert (why, deciding.exit_code, deciding.exam.run.mode) == ("", 0, Mode.FAST)
    assert subset is deciding
    assert len(deciding.exam.asked) <= 8 + sum(row["canary"] for row in read_lines(medication / "baseline.cases.jsonl"))


def test_sixty_cards_of_one_questions_words_are_not_green(medication: Path, home: Path) -> None:
    """Whatever stands above the gold or beside it: what blocks the full set blocks the pull request."""
    places(medication, 4)
    inputs = exam.load(load_suite(medication), home)
    fast = select_fast(inputs.golden.cases, 4, inputs.baseline)
    victim = next(c for c in read_lines(medication / "golden.jsonl") if c["id"] not in fast and "must_cite_one_of" in c)
    flood = [flooding(victim, n) for n in range(60)]
    write_lines(medication / "cards.jsonl", [*read_lines(medication / "cards.jsonl"), *flood])
    assert evaluated(medication, home).exit_code == 1
    _, deciding, why = examined(medication, home)
    assert (deciding.exit_code, deciding.exam.run.mode) == (1, Mode.FULL)
    assert why.startswith("exact ranking of every case is BLOCK: ")


def flooding(case: Row, number: int) -> Row:
    words = case["query"].split()
    random.Random(number).shuffle(words)
    card = {"id": f"flood-{number}", "title": " ".join(words), "text": f"{' '.join(words)} {number}"}
    return {**card, "language": case.get("language", ""), "metadata": {"audience": "public"}}


# ------------------------------------------------------------------ random changes


def drop(cards: list[Row], cases: list[Row], pick: random.Random) -> list[Row]:
    gone = {card["id"] for card in pick.sample(cards, pick.randint(1, 2))}
    return [card for card in cards if card["id"] not in gone]


def shorten(cards: list[Row], cases: list[Row], pick: random.Random) -> list[Row]:
    share, hit = pick.random(), {card["id"] for card in pick.sample(cards, pick.randint(1, 6))}
    return [{**c, "text": c["text"][: max(20, int(share * len(c["text"])))]} if c["id"] in hit else c for c in cards]


def flood(cards: list[Row], cases: list[Row], pick: random.Random) -> list[Row]:
    victim, many = pick.choice(cases), pick.choice([1, 3, 10, 60])
    return [*cards, *(flooding(victim, n) for n in range(many))]


def copy(cards: list[Row], cases: list[Row], pick: random.Random) -> list[Row]:
    original = pick.choice(cards)
    return [*cards, *({**original, "id": f"copy-{n}", "text": f"{original['text']} {n}"} for n in range(pick.randint(1, 6)))]


def swap_texts(cards: list[Row], cases: list[Row], pick: random.Random) -> list[Row]:
    one, other = pick.sample(cards, 2)
    texts = {one["id"]: other["text"], other["id"]: one["text"]}
    return [{**card, "text": texts.get(card["id"], card["text"])} for card in cards]


def expire(cards: list[Row], cases: list[Row], pick: random.Random) -> list[Row]:
    hit = {card["id"] for card in pick.sample(cards, pick.randint(1, 3))}
    return [{**card, "valid_until": "2026-01-01"} if card["id"] in hit and "valid_from" not in card else card for card in cards]


def relabel(cards: list[Row], cases: list[Row], pick: random.Random) -> list[Row]:
    hit, field = {card["id"] for card in pick.sample(cards, 2)}, pick.choice(["audience", "language", "source_url"])
    changed = {"metadata": {"audience": "staff"}} if field == "audience" else {field: "fr" if field == "language" else "x"}
    return [{**card, **changed} if card["id"] in hit else card for card in cards]


def unrelated(cards: list[Row], cases: list[Row], pick: random.Random) -> list[Row]:
    words = ["garden", "bicycle", "opera", "granite", "harbour", "violin", "pepper", "window"]
    texts = (" ".join(pick.sample(words, 6)) for _ in range(pick.randint(1, 20)))
    return [*cards, *({"id": f"else-{n}", "text": text, "metadata": {"audience": "public"}} for n, text in enumerate(texts))]


CHANGES: tuple[Callable[[list[Row], list[Row], random.Random], list[Row]], ...] = (
    drop, shorten, flood, copy, swap_texts, expire, relabel, unrelated,
)  # fmt: skip
COUNT = int(os.environ.get("KBGATE_RANDOM_CHANGES", "10"))
"""Of random changes; 200 take minutes."""


@pytest.mark.slow
def test_whatever_blocks_the_full_set_blocks_the_pull_request(tmp_path: Path, home: Path) -> None:
    """Random changes to the cards of the bundled suite; prints how each kind ended."""
    cards, cases = read_lines(MEDICATION / "cards.jsonl"), read_lines(MEDICATION / "golden.jsonl")
    suite = tmp_path / "medication"
    suite.mkdir()
    for file in MEDICATION.iterdir():
        if file.is_file():
            (suite / file.name).write_bytes(file.read_bytes())
    told: dict[str, list[int]] = {}
    for number in range(COUNT):
        pick = random.Random(number)
        change = CHANGES[number % len(CHANGES)]
        write_lines(suite / "cards.jsonl", change(cards, cases, pick))
        whole = evaluated(suite, home)
        _, deciding, _ = examined(suite, home)
        assert whole.exit_code == 0 or deciding.exit_code != 0, (number, change.__name__, whole.summary)
        counts = told.setdefault(change.__name__, [0, 0, 0])
        counts[0 if whole.exit_code else 1 if deciding.exam.run.mode == Mode.FAST else 2] += 1
    print(
        json.dumps({kind: dict(zip(("red", "green by subset", "green in full"), n, strict=True)) for kind, n in told.items()})
    )
    assert sum(counts[0] for counts in told.values()), "no change did harm: nothing was shown"
    assert sum(counts[1] for counts in told.values()), "no subset decided: nothing was shown"
