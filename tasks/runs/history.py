"""What each run of a suite came to, a line a run, in the order they ended.

`.kbgate/history/<key of its identity>.jsonl`, only ever appended to, each line in one write, so that runs which end together do
not mix.
A line that cannot be read (a full disk, a power cut) is skipped by readers; it never hides the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import ConfigDict, Field

from kbgate.tasks.conclusions import Code, VerdictName
from kbgate.tasks.domain import Mode
from kbgate.tasks.records import append_line, parse_json
from kbgate.tasks.results import Previous
from kbgate.tasks.runs.document import Moment, VerdictDocument
from kbgate.tasks.runs.parts import Ids, PastMean, PreviousPart, previous_of
from kbgate.tasks.schema import Counts, Day, Document, Fingerprints

SCHEMA: Final = 1


class HistoryLine(Document):
    """One run, from its verdict document."""

    # A line of this schema is readable whatever else another kbgate wrote into it.
    model_config = ConfigDict(extra="ignore")

    schema_: Literal[1] = Field(alias="schema")
    suite: str
    run: str
    time: Moment
    mode: Mode
    method: str
    verdict: VerdictName
    exit_code: int
    code: Code
    fingerprints: Fingerprints
    kb: str
    """Fingerprint of the cards."""
    as_of: Day | None = None
    """The day on which validity was judged; None in lines of the first kbgate."""
    valid_at: Moment | None = None
    """The instant at which it was judged; None in lines of an older kbgate."""
    counts: Counts
    newly_failing: Ids
    newly_passing: Ids
    means: dict[str, PastMean]
    """By figure: of the method's ranking, over all cases."""


def path_of(home: Path, suite: str) -> Path:
    """The history file of a suite; `suite`: the key of its identity."""
    return home / "history" / f"{suite}.jsonl"


def append_history(home: Path, suite: str, document: VerdictDocument) -> None:
    """Append one run: verdict, mode, fingerprints, means with n, counts, changed cases."""
    figures = [figure for figure in document.figures if figure.lane == document.method and not figure.slice]
    line = HistoryLine(
        schema=SCHEMA,
        suite=document.suite,
        run=document.run,
        time=document.time,
        mode=document.mode,
        method=document.method,
        verdict=document.verdict,
        exit_code=document.exit_code,
        code=document.code,
        fingerprints=document.fingerprints,
        kb=document.kb,
        as_of=document.as_of,
        valid_at=document.valid_at,
        counts=document.counts,
        newly_failing=document.newly_failing,
        newly_passing=document.newly_passing,
        means={figure.metric: PastMean(mean=figure.current, n=figure.n) for figure in figures},
    )
    append_line(path_of(home, suite), line.plain())


def read_history(home: Path, suite: tuple[str, ...]) -> list[HistoryLine]:
    """Every readable line, oldest first; `suite`: the keys its identity has and had."""
    lines = []
    for path in (path_of(home, key) for key in suite):
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for line in text.split("\n"):
            try:
                lines.append(HistoryLine.of(parse_json(line)))
            except ValueError:
                continue
    return lines


def previous_run(home: Path, suite: tuple[str, ...], mode: Mode, golden: str) -> Previous | None:
    """The last run of a suite in this mode, where it asked the same golden set; None where there is none or it asked another.

    `golden`: the golden set's fingerprint.
    """
    lines = [line for line in read_history(home, suite) if line.mode == mode]
    if not lines or lines[-1].fingerprints.golden != golden:
        return None
    return previous_of(PreviousPart(run=lines[-1].run, means=lines[-1].means))
