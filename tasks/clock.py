"""When: the moment of a run, the instant at which validity is judged, and what a date in a file means.

The clock is read once a run, at the door (a command, a flow's body), and handed down from there: nothing in tasks or reports
reads it. Moments are whole seconds, UTC; in a store they are numbers, seconds since 1970. A date in a file is ISO: with a time
it is an instant, of the offset it names and of UTC where it names none; a bare day holds from its beginning to its end, UTC.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from dataclasses import dataclass

from kbgate.tasks.settings import Suite


@dataclass(frozen=True, slots=True)
class Clock:
    """What time it is for one run."""

    now: dt.datetime
    """When the run began: exceptions end and baselines age by it."""
    as_of: dt.datetime
    """The instant at which cards have to be valid."""

    @property
    def today(self) -> dt.date:
        """The day of the run, UTC."""
        return self.now.date()

    @classmethod
    def at(cls, now: dt.datetime) -> Clock:
        """The clock of a run that judges validity now."""
        moment = now.astimezone(dt.UTC).replace(microsecond=0)
        return cls(moment, moment)

    @classmethod
    def of(cls, suite: Suite, now: dt.datetime) -> Clock:
        """The clock of a run that judges validity as the suite says: now, or at 00:00 UTC of the day it pins."""
        clock = cls.at(now)
        return clock if suite.as_of == "today" else cls(clock.now, midnight(suite.as_of))


_EPOCH, _SECOND = dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(seconds=1)


def midnight(day: dt.date) -> dt.datetime:
    """00:00 UTC of a day."""
    return dt.datetime.combine(day, dt.time(), dt.UTC)


def seconds_of(moment: dt.datetime) -> int:
    """A moment as a store holds it: seconds since 1970, UTC, what is less than a second cut off."""
    return (moment - _EPOCH) // _SECOND


def first_second(text: str) -> int:
    """The first second at which a `valid_from` holds: of a bare day its beginning. Raises ValueError where it is no date."""
    moment = _moment(text, dt.time())
    return -((_EPOCH - moment) // _SECOND)


def last_second(text: str) -> int:
    """The last second at which a `valid_until` holds: of a bare day its end. Raises ValueError where it is no date."""
    return seconds_of(_moment(text, dt.time(23, 59, 59)))


def _moment(text: str, of_day: dt.time) -> dt.datetime:
    """The instant a text names; of a bare day the one at a time of it."""
    moment = dt.datetime.fromisoformat(text)
    with contextlib.suppress(ValueError):  # it names a time
        moment = dt.datetime.combine(dt.date.fromisoformat(text), of_day)
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


EARLIEST, LATEST = first_second(dt.date.min.isoformat()), last_second(dt.date.max.isoformat())
"""The validity of a card that says nothing of it."""
