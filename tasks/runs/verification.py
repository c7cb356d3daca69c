"""Is a run's verdict what its rankings, the golden set and the baseline say? No model, no store, nothing asked again.

Everything that follows from the rankings is computed anew and held against the files: scores, figures, changes, reasons,
verdict, both TREC files. What cannot follow from them (times, outcomes, provenance, the report's words) is guarded by the
digests that verdict.json holds of every other file and of itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pydantic import JsonValue

from kbgate.tasks.clock import Clock, midnight
from kbgate.tasks.comparison.compare import exam_of
from kbgate.tasks.conclusions import Evaluation, Exam
from kbgate.tasks.domain import Inputs, Mode
from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.gate.policy import policy_fingerprint
from kbgate.tasks.gate.verdict import judge
from kbgate.tasks.index.fingerprint import golden_fingerprint, kb_fingerprint
from kbgate.tasks.results import Run
from kbgate.tasks.runs.columns import differing_scores, read_run
from kbgate.tasks.runs.document import FILE, Basis, VerdictDocument, parts_of, read_document, verdict_document
from kbgate.tasks.runs.parts import previous_of
from kbgate.tasks.runs.runfiles import digests_of, seal_of, trec_judgments, trec_run
from kbgate.tasks.schema import Fingerprints


def read_verdict(folder: Path) -> VerdictDocument:
    """A run's verdict.json; raises `InputError`, one sentence, where it is none that kbgate wrote."""
    return read_document(folder / FILE)


def verify(folder: Path, document: VerdictDocument, inputs: Inputs) -> list[str]:
    """What differs between a run's files and what follows from its rankings, a sentence each; empty where all agrees.

    Raises `InputError` where golden set, policy, baseline or cards are no longer those of the run.
    """
    _refuse_other_inputs(document, inputs)
    try:
        differences = list(_edited(folder, document))
        run = read_run(folder / "run.parquet", document.method, document.mode)
        return [*differences, *_recomputed(folder, document, inputs, run)]
    except (KeyError, TypeError, AttributeError, ValueError, OSError, pa.ArrowException) as error:
        return [f"the run's files cannot be read as kbgate wrote them ({type(error).__name__}: {error})"]


def _refuse_other_inputs(document: VerdictDocument, inputs: Inputs) -> None:
    current = Fingerprints(
        index=document.fingerprints.index,
        golden=golden_fingerprint(inputs.golden.cases),
        policy=policy_fingerprint(inputs.suite),
        baseline=inputs.baseline.fingerprint if inputs.baseline else "",
    )
    written = document.fingerprints.plain()
    problems = [
        Problem(str(inputs.suite.given), 0, f"its {part} was {written[part] or 'none'} in the run and is "
                f"{value or 'none'} now; check out what the run saw")
        for part, value in current.plain().items()
        if written[part] != value
    ]  # fmt: skip
    if document.kb != kb_fingerprint(inputs.kb.cards):
        problems.append(Problem(str(inputs.suite.given), 0, "its cards are not those of the run; check out what the run saw"))
    if problems:
        raise InputError(problems)


def _edited(folder: Path, document: VerdictDocument) -> Iterator[str]:
    if document.seal != seal_of(document):
        yield f"{FILE} is not what was written: its seal does not fit"
    present = digests_of(folder)
    for name in sorted({*present, *document.files}):
        if present.get(name) != document.files.get(name):
            yield f"{name} is not what was written"


def _recomputed(folder: Path, document: VerdictDocument, inputs: Inputs, run: Run) -> Iterator[str]:
    asked, cases = frozenset(document.inputs.asked), inputs.golden.cases
    if document.mode == Mode.FULL and len(asked & set(cases)) != len(cases):
        yield f"{FILE}: a full run asks all {len(cases)} cases, and inputs.asked names {len(asked & set(cases))}"
    exam = _exam(document, inputs, run)
    evaluation = Evaluation(
        exam=exam,
        verdict=judge(exam),
        run_id=document.run,
        build=document.build,
        folder=folder,
        fingerprints=document.fingerprints,
        provenance=document.provenance,
        counts=document.counts,
    )
    written, anew = document.plain(), verdict_document(evaluation).plain()
    for part in parts_of(Basis.RANKINGS):
        yield from _differences(part, written[part], anew[part])
    for row in differing_scores(folder / "scores.parquet", exam.scores):
        figure = f"{row['metric']} of {row['case']} ({row['lane']})"
        yield f"scores.parquet: {figure} says {row['written']}, is {row['anew']}"
    for name, text in (("run.trec", trec_run(run)), ("qrels.trec", trec_judgments(exam.scores.placements))):
        if sorted((folder / name).read_text(encoding="utf-8").splitlines()) != sorted(text.splitlines()):
            yield f"{name} does not hold the rankings of run.parquet"


def _exam(document: VerdictDocument, inputs: Inputs, run: Run) -> Exam:
    """The exam that the run's rankings make, of the cases it asked and the cards it was told of."""
    asked = frozenset(document.inputs.asked)
    return exam_of(
        dataclasses.replace(inputs, announced=tuple(document.inputs.announced)),
        {name: case for name, case in inputs.golden.cases.items() if name in asked},
        run,
        Clock(document.time, midnight(document.as_of)),
        touched=tuple(document.cases.touched),
        previous=previous_of(document.inputs.previous),
        explained=tuple(document.inputs.explained),
    )


def _differences(place: str, written: JsonValue, anew: JsonValue) -> Iterator[str]:
    """The places where two JSON values differ, lists and objects walked through."""
    if isinstance(written, dict) and isinstance(anew, dict):
        for name in sorted({*written, *anew}):
            yield from _differences(f"{place}.{name}", written.get(name), anew.get(name))
    elif isinstance(written, list) and isinstance(anew, list) and len(written) == len(anew):
        for number, (one, other) in enumerate(zip(written, anew, strict=True)):
            yield from _differences(f"{place}[{number}]", one, other)
    elif written != anew or isinstance(written, bool) != isinstance(anew, bool):
        yield f"{FILE}: {place} says {str(written)[:80]}, is {str(anew)[:80]}"
