"""When: the moment of a run, and the instant at which validity is judged.

The clock is read once a run, at the door (a command, a flow's body), and handed down from there: nothing in tasks or reports
reads it. Moments are whole seconds, UTC.
"""

from __future__ import annotations

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


def midnight(day: dt.date) -> dt.datetime:
    """00:00 UTC of a day."""
    return dt.datetime.combine(day, dt.time(), dt.UTC)
