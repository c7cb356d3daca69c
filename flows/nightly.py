"""Every night: all suites, the full set of each; one that errs stops no other, and the night is green only if all are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbgate.flows import door, evaluate
from kbgate.flows.prefect import as_flow, call
from kbgate.flows.publish import publish_night
from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.errors import KbgateError
from kbgate.tasks.outcomes import Night, NightlyRow
from kbgate.tasks.runs.nights import Roll, call_the_roll
from kbgate.tasks.runs.runfiles import summarise


def run(
    suites: list[str] | None = None,
    folder: str = "baselines",
    home: str = "",
    re_embed: bool = False,
    forget: list[str] | None = None,
) -> Night:
    """Evaluate the suites named, or every one under `folder`; returns one row each, and one for each that is missing there.

    `forget`: suites under the folder that are gone and meant to be.
    """
    place = door.home_of(home)
    roll = Roll("", tuple(suites)) if suites else call_the_roll(place, Path(folder), forget or ())
    if not roll.suites and not roll.missed:
        raise KbgateError(f"no suite under {folder}: a night that examined nothing is not green")
    night = Night((*(_row(suite, home, re_embed) for suite in roll.suites), *roll.missed))
    publish_night(night, place, roll)
    return night


def _row(suite: str, home: str, re_embed: bool) -> NightlyRow:
    try:
        evaluation = call(evaluate, evaluate.run, suite=suite, home=home, re_embed=re_embed)
    except Exception as error:
        sentence = str(error).split("\n")[0] or type(error).__name__
        return NightlyRow(suite, VerdictName.ERROR, getattr(error, "exit_code", 4), sentence)
    return summarise(suite, evaluation)


def __getattr__(name: str) -> Any:
    if name == "nightly":
        return as_flow(run, name)
    raise AttributeError(name)
