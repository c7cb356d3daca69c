"""The order in which causes are looked at is said by what each comes after."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kbgate.tasks.diagnosis.causes import CAUSES, Confirmed, Missing, cause, in_order
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.errors import UnknownPart

Bring = Callable[..., None]
ORDER = [
    "removed", "rejected", "settings", "mojibake", "repeated_text", "table_header", "text_lost", "chunk_split",
    "no_description", "validity", "label", "filter", "input_limit", "question_limit", "lost_by_index",
    "card_changed", "displaced", "side_effect", "embedding",
]  # fmt: skip


def names() -> list[str]:
    return [part.name for part in in_order()]


@pytest.fixture
def bring() -> Iterator[Bring]:
    """Declares causes that are gone after the test."""
    brought: list[str] = []

    def declare(name: str, after: str | tuple[str, ...]) -> None:
        @cause(name, after=after)
        def look(missing: Missing, lab: Laboratory) -> Confirmed | None:
            """Nothing."""
            return None

        brought.append(name)

    list(CAUSES)  # those of the folder first
    yield declare
    for name in brought:
        CAUSES.remove(name)


def test_the_order_is_pinned() -> None:
    assert names() == ORDER


def test_a_cause_that_somebody_brings_stands_where_it_says(bring: Bring) -> None:
    bring("last", "embedding")
    bring("between", ("removed", "displaced"))
    place = ORDER.index("side_effect")
    assert names() == [*ORDER[:place], "between", *ORDER[place:], "last"]


def test_a_cause_after_nobody_knows_what_is_refused(bring: Bring) -> None:
    bring("odd", "remove")
    with pytest.raises(UnknownPart, match="cause 'odd': comes after the unknown cause 'remove'; did you mean 'removed'"):
        in_order()


def test_causes_that_come_after_each_other_are_refused(bring: Bring) -> None:
    bring("hen", "egg")
    bring("egg", ("hen", "removed"))
    with pytest.raises(ValueError, match="come after each other, so that none can be first: egg, hen"):
        in_order()
