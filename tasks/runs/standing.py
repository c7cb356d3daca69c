"""Does the last verdict still stand? Only where an exam now could come to no other, and only as its run wrote it.

What is in no fingerprint is asked one by one: the cards that are valid, the exceptions that hold, whether the baseline is too
old, what an ingest announced, the libraries. Wherever something differs, is missing or cannot be read, an exam is due.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from pathlib import Path

from pydantic import JsonValue

from kbgate.tasks.clock import Clock
from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.domain import Inputs, Material, Mode
from kbgate.tasks.errors import KbgateError
from kbgate.tasks.gate.age import is_too_old
from kbgate.tasks.gate.allowances import in_force
from kbgate.tasks.identity import identity_of, run_folder
from kbgate.tasks.index.fingerprint import kb_fingerprint, pipeline_of
from kbgate.tasks.index.provenance import provenance_of
from kbgate.tasks.outcomes import Judgement
from kbgate.tasks.predicates import valid_cards
from kbgate.tasks.runs.document import VerdictDocument
from kbgate.tasks.runs.history import read_history
from kbgate.tasks.runs.verification import read_verdict, verify
from kbgate.tasks.schema import Fingerprints, Provenance


def already_judged(
    inputs: Inputs, material: Material, fingerprints: Fingerprints, clock: Clock, home: Path
) -> Judgement | None:
    """The last full run's verdict, where it judged exactly what is there now; None where an exam is due."""
    runs = [line.run for line in read_history(home, identity_of(inputs.suite).keys) if line.mode == Mode.FULL]
    # A bad line in the knowledge base is in no fingerprint.
    if not runs or inputs.kb.problems:
        return None
    folder = run_folder(home, inputs.suite, runs[-1])
    try:
        document = read_verdict(folder)
        stands = (
            document.run == folder.name
            and _judged_alike(document, inputs, fingerprints, clock)
            and _made_of(document.provenance) == _made_of(_provenance(inputs, material))
            and not verify(folder, document, _typed_as(document.inputs.suite, inputs))
        )
    except (KbgateError, OSError):
        return None
    return Judgement(document.run, document.verdict, document.exit_code) if stands else None


def _typed_as(given: str, inputs: Inputs) -> Inputs:
    """The inputs with the suite's folder as it was typed for a run: sentences name it in commands."""
    return dataclasses.replace(inputs, suite=inputs.suite.model_copy(update={"given": given}))


def _judged_alike(document: VerdictDocument, inputs: Inputs, fingerprints: Fingerprints, clock: Clock) -> bool:
    """Whether a verdict is of what would be judged now, by what it would be judged by."""
    cards, then = inputs.kb.cards, document.time.date()
    return (
        document.suite == inputs.suite.name
        and document.mode == Mode.FULL
        and document.verdict != VerdictName.ERROR
        and not any(reason.check == "rejected" for reason in document.reasons)
        and document.fingerprints == fingerprints
        and document.kb == kb_fingerprint(cards)
        and {*document.inputs.announced} == {*inputs.announced}
        and document.valid_at is not None
        and valid_cards(cards, document.valid_at) == valid_cards(cards, clock.as_of)
        and _by_the_calendar(inputs, then) == _by_the_calendar(inputs, clock.today)
    )


def _by_the_calendar(inputs: Inputs, day: dt.date) -> tuple[object, ...]:
    """What the gate says otherwise on another day: exceptions end, and baselines age."""
    return in_force(inputs.suite, day), is_too_old(inputs.baseline, inputs.suite, day)


def _provenance(inputs: Inputs, material: Material) -> Provenance:
    return provenance_of(inputs.suite.folder, material.model, material.settings, pipeline_of(inputs.suite))


def _made_of(provenance: Provenance) -> dict[str, JsonValue]:
    """Model, libraries and settings, whatever the commit."""
    return {name: value for name, value in provenance.plain().items() if name != "commit"}
