from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks import exam
from kbgate.tasks.clock import Clock
from kbgate.tasks.domain import Inputs
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.runs.arrivals import announced_ids, arrivals
from tests.conftest import edit_lines

CLI = Callable[..., int]
CLOCK = Clock.at(dt.datetime(2026, 6, 1, tzinfo=dt.UTC))


def inputs_of(suite: Path, home: Path) -> Inputs:
    return exam.load(load_suite(suite), home)


def add_card(suite: Path, **fields: Any) -> None:
    import json

    with (suite / "cards.jsonl").open("a") as file:
        file.write(json.dumps({"language": "en", "metadata": {"audience": "public"}, **fields}) + "\n")


def test_what_came_in_since_the_last_green_run(medication: Path, kbgate: CLI, home: Path) -> None:
    assert kbgate("evaluate", medication) == 0
    add_card(medication, id="hours", text="The pharmacy opens at eight.")
    edit_lines(
        medication / "cards.jsonl",
        lambda c: {**c, "updated_at": "2026-01-01", "source_url": "x"} if c["id"] == "tb-observed" else c,
    )
    edit_lines(medication / "cards.jsonl", lambda c: None if c["id"] == "cost-assistance-2025" else c)
    change = arrivals(inputs_of(medication, home), home, "evening")
    assert change is not None
    assert (change.new, change.changed, change.removed) == (("hours",), ("tb-observed",), ("cost-assistance-2025",))
    assert change.since.startswith("run ")
    assert change.batch == "evening"


def test_without_a_run_it_is_since_the_baseline_and_without_that_nothing(medication: Path, tmp_path: Path) -> None:
    change = arrivals(inputs_of(medication, tmp_path), tmp_path)
    assert change is not None
    assert (change.since, change.new, change.changed, change.removed) == ("the baseline", (), (), ())
    for file in medication.glob("baseline*"):
        file.unlink()
    assert arrivals(inputs_of(medication, tmp_path), tmp_path) is None


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (None, ()), ("", ()), ("None", ()), ("a", ("a",)), ("a, b,", ("a", "b")), (["a", 1], ("a", "1")),
        ("['a', 'b']", ("a", "b")), ('["a"]', ("a",)), ("[a, b]", ("a", "b")), (5, ("5",)), ("[" * 500, ()),
        ("a\nb,c", ("a", "b", "c")), ('"a,b",c', ("a,b", "c")), (["a,b"], ("a,b",)), ("['a,b']", ("a,b",)),
        ('a"b,c', ('a"b', "c")), ("a,a", ("a",)), ("cafe\u0301", ("caf\u00e9",)),
    ],
)  # fmt: skip
def test_ids_that_an_event_announced_in_whatever_form(given: object, ids: tuple[str, ...]) -> None:
    assert announced_ids(given) == ids


def test_an_id_with_a_comma_is_one_where_there_is_such_a_card() -> None:
    assert announced_ids("smith, john\nsmith,jane", {"smith, john"}) == ("smith, john", "smith", "jane")
    assert announced_ids("cafe\u0301,bar", {"caf\u00e9,bar"}) == ("caf\u00e9,bar",)
