"""One exam in this process, from a folder of files to what the gate and the diagnosis say: what the drill needs of it.

Searched exactly, unless the suite sets parameters of an index: then a real one is built.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from kbgate.tasks.baseline.files import write_baseline
from kbgate.tasks.clock import Clock, midnight
from kbgate.tasks.conclusions import Evaluation, Exam, Level, VerdictName
from kbgate.tasks.errors import InputError, KbgateError
from kbgate.tasks.exam import evaluate, in_memory, load, prepare
from kbgate.tasks.findings import Finding
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.settings import IndexSettings
from kbgate.tasks.studies.faults import BAD_INPUT


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one exam."""

    verdict: str
    """PASS, WARN, BLOCK, INCONCLUSIVE, ERROR, or "bad input"."""
    reasons: tuple[tuple[str, str], ...] = ()
    """(check, sentence) of every reason at least supporting, or the sentences of a refused input."""
    passing: frozenset[str] = frozenset()
    """Cases of which every group of gold has a card in the top k, read off the rankings themselves."""
    held: frozenset[tuple[str, str]] = frozenset()
    """(case, card) of every gold in the top k."""
    findings: tuple[Finding, ...] = ()
    trouble: str = ""

    @property
    def refused(self) -> bool:
        """Whether nothing was asked, for what there was to read is wrong."""
        return self.verdict == BAD_INPUT


def trial_of(folder: Path, home: Path, limit: int) -> Trial:
    """The exam of a suite's folder; `limit`: golds to look into."""
    try:
        evaluation = _evaluated(folder, home, limit)
    except InputError as error:
        return Trial(BAD_INPUT, tuple(("input", str(problem)) for problem in error.problems))
    except KbgateError as error:
        return Trial(VerdictName.ERROR, (("completeness", str(error)),))
    verdict, diagnosis = evaluation.verdict, evaluation.diagnosis
    passing, held = _passing(evaluation.exam)
    reasons = tuple((reason.check, reason.sentence) for reason in verdict.reasons if reason.level != Level.ADVISORY)
    return Trial(verdict.name, reasons, passing, held, diagnosis.findings, diagnosis.trouble)


def accept(folder: Path, home: Path) -> None:
    """Make what a suite's folder holds now its own baseline, whatever it is worth."""
    write_baseline(_evaluated(folder, home, 0), "what the drill starts from", accept_regression=True)


def _evaluated(folder: Path, home: Path, limit: int) -> Evaluation:
    """Judged on the suite's own day, so that no exception ends and no baseline ages between two exams."""
    inputs = load(load_suite(folder), home)
    host = in_memory if inputs.suite.index == IndexSettings() else None
    assert isinstance(inputs.suite.as_of, dt.date)  # every copy is dated
    clock = Clock.at(midnight(inputs.suite.as_of))
    material = prepare(inputs, home)
    return evaluate(inputs, material, inputs.golden.cases, home, clock, host=host, limit=limit)


def _passing(exam: Exam) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Which cases pass, and which golds stand, by looking at the rankings and nothing else."""
    passing, held = set(), set()
    for case in exam.golden.values():
        top = set(exam.run.of(exam.run.method, case.id).head(exam.suite.top_k).ids)
        held |= {(case.id, card) for group in case.groups for card in group if card in top}
        if case.groups and all(top & set(group) for group in case.groups):
            passing.add(case.id)
    return frozenset(passing), frozenset(held)
