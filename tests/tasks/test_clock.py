"""What a date in a file means, and what time it is for a run."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from kbgate.tasks.clock import EARLIEST, LATEST, Clock, first_second, last_second, midnight, seconds_of
from kbgate.tasks.settings import Suite

DAY = dt.datetime(2026, 6, 30, tzinfo=dt.UTC)
LAST = DAY + dt.timedelta(hours=23, minutes=59, seconds=59)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026-06-30", DAY, LAST),
        ("20260630", DAY, LAST),
        ("2026-06-30T18:00:00Z", DAY + dt.timedelta(hours=18), DAY + dt.timedelta(hours=18)),
        ("2026-06-30T18:00:00+02:00", DAY + dt.timedelta(hours=16), DAY + dt.timedelta(hours=16)),
        ("2026-06-30T18:00:00-05:00", DAY + dt.timedelta(hours=23), DAY + dt.timedelta(hours=23)),
        ("2026-06-30T00:00:00", DAY, DAY),  # a time without an offset is of UTC, and midnight is a time
        ("2026-06-30 18:00", DAY + dt.timedelta(hours=18), DAY + dt.timedelta(hours=18)),
        ("2026-06-30T17:59:59.5Z", DAY + dt.timedelta(hours=18), DAY + dt.timedelta(hours=18, seconds=-1)),
    ],
)
def test_a_date_is_a_day_or_an_instant(text: str, first: dt.datetime, last: dt.datetime) -> None:
    assert (first_second(text), last_second(text)) == (int(first.timestamp()), int(last.timestamp()))


@pytest.mark.parametrize("text", ["soon", "", "2026-13-01", "2026-06-30T25:00", "30.06.2026", "1782863999"])
def test_what_is_no_date_is_refused(text: str) -> None:
    for second in (first_second, last_second):
        with pytest.raises(ValueError, match=r"isoformat|must be in"):
            second(text)


def test_the_ends_of_the_calendar_have_a_second_whatever_their_offset() -> None:
    assert first_second("0001-01-01T00:00:00+14:00") == EARLIEST - 14 * 3600
    assert last_second("9999-12-31T23:59:59-14:00") == LATEST + 14 * 3600
    assert seconds_of(midnight(dt.date.min)) == EARLIEST


def test_validity_is_judged_now_or_at_the_beginning_of_the_day_that_is_pinned() -> None:
    now = dt.datetime(2026, 6, 30, 1, 0, 0, 7, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    clock = Clock.of(Suite(folder=Path(), name="x"), now)
    assert clock == Clock.at(now)
    assert clock.now == clock.as_of == dt.datetime(2026, 6, 29, 23, tzinfo=dt.UTC)
    assert clock.today == dt.date(2026, 6, 29)
    pinned = Clock.of(Suite(folder=Path(), name="x", as_of=dt.date(2026, 1, 31)), now)
    assert (pinned.now, pinned.as_of) == (clock.now, dt.datetime(2026, 1, 31, tzinfo=dt.UTC))
