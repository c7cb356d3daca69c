"""Which cases a change touches, found by ranking every case exactly over the cached vectors and words.

A score that was accepted is no limit for a new card: words weigh anew with every card that comes or goes, and fused ranks
hang together down to the last candidate. So every case is ranked, scored and judged as the full set would be with exact
search; a subset is enough only where all of that is green.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kbgate.tasks.clock import Clock
from kbgate.tasks.comparison.compare import exam_of
from kbgate.tasks.comparison.wordings import earlier_wordings, follow_renames
from kbgate.tasks.conclusions import Exam
from kbgate.tasks.domain import Index, Inputs, Material, Mode
from kbgate.tasks.errors import counted, named
from kbgate.tasks.gate.verdict import judge
from kbgate.tasks.results import Placement
from kbgate.tasks.retrieval.run import rank_exactly, ranks_exactly
from kbgate.tasks.runs.arrivals import since_baseline
from kbgate.tasks.schema import BaselineCase
from kbgate.tasks.tables import Vectors

MOST_PAIRS = 100_000_000
"""Cases times rows that are ranked exactly; beyond, asking the full set is the cheaper way to know."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What a change reaches."""

    cases: tuple[str, ...] = ()
    """Those to be asked beside the fast subset."""
    all: str = ""
    """Why no subset will do and the full set has to be asked; "" where one will."""


def find_touched(
    inputs: Inputs, material: Material, vectors: Vectors, clock: Clock, reworded: Vectors | None = None
) -> Touched:
    """The cases a change touches, or why all must be asked.

    `vectors`: one per case of the golden set, in its order; `reworded`: one per earlier wording that a full run asks.
    """
    baseline, cases, method = inputs.baseline, inputs.golden.cases, inputs.suite.retrieval.method
    pairs = len(cases) * len(material.rows)
    if baseline is None:
        return Touched(all="there is no baseline yet")
    if baseline.summary.provenance.settings != material.settings:
        return Touched(all="how cards become rankings is not as it was in the baseline")
    if not ranks_exactly(method):
        return Touched(all=f"only {method} itself can say how it ranks")
    if pairs > MOST_PAIRS:
        return Touched(
            all=f"{len(cases)} cases over {len(material.rows)} rows are {pairs} pairs; {MOST_PAIRS} are ranked exactly"
        )
    index, wordings = Index(material.rows, material.vectors), earlier_wordings(cases, baseline, Mode.FULL, inputs.judges_edits)
    run = rank_exactly(inputs.suite, index, cases, vectors, clock.as_of)
    earlier = rank_exactly(inputs.suite, index, wordings, reworded, clock.as_of) if wordings and reworded is not None else None
    failed = [case for case, answer in run.answers.items() if not answer.outcome.measured]
    if failed:
        return Touched(all=f"exact ranking could not measure {counted(len(failed), 'case')}: {named(failed)}")
    exam = exam_of(inputs, cases, run, clock, earlier=earlier)
    verdict = judge(exam)
    if verdict.exit_code != 0:
        return Touched(all=f"exact ranking of every case is {verdict.name}: {verdict.reasons[0].sentence}")
    return Touched(tuple(sorted(_moved(exam, inputs))))


def _moved(exam: Exam, inputs: Inputs) -> Iterator[str]:
    """Cases that are new, edited, about a card that changed, or whose top k or a gold of which stands elsewhere now."""
    assert inputs.baseline is not None
    rows, change = follow_renames(inputs.baseline, exam.golden), since_baseline(inputs)
    changed = {*change.changed, *change.removed} if change else set()
    for name, case in exam.golden.items():
        row, place = rows.get(name), exam.scores.placements[name]
        if row is None or row.hash != case.hash or changed & {*case.grades, *row.top} or _ranks_otherwise(place, row):
            yield name


def _ranks_otherwise(place: Placement, row: BaselineCase) -> bool:
    return list(place.top) != list(row.top) or dict(place.ranks) != dict(row.gold_ranks)
