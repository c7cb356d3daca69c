"""Every night: all suites, the full set of each; one that errs stops no other, and the night is green only if all are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbgate.flows import evaluate, publish
from kbgate.tasks import stages
from kbgate.tasks.errors import KbgateError
from kbgate.tasks.results import NightlyRow, Summary


def run(suites: list[str] | None = None, folder: str = "baselines", home: str = ".kbgate") -> Summary:
    """Evaluate the suites named, or every one under `folder`; returns one row each."""
    found = suites or stages.find_suites(Path(folder))
    if not found:
        raise KbgateError(f"no suite under {folder}: a night that examined nothing is not green")
    summary = Summary(tuple(_examined(suite, home) for suite in found))
    publish.publish_summary(summary, Path(home))
    return summary


def _examined(suite: str, home: str) -> NightlyRow:
    try:
        evaluation = publish.call(evaluate, "evaluate", suite=suite, home=home)
    except Exception as error:
        said = str(error).split("\n")[0] or type(error).__name__
        return NightlyRow(suite, "ERROR", getattr(error, "exit_code", 4), said)
    return stages.summarise(suite, evaluation)


def __getattr__(name: str) -> Any:
    if name == "nightly":
        return publish.as_flow(run, name)
    raise AttributeError(name)
