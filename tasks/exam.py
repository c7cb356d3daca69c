"""The pipeline, once: a suite's files loaded, an index prepared, every case asked, scored, compared, judged and diagnosed.

Flows, studies and tests call these functions. Each stage goes through `stages`, so that the same lines are task runs inside a
Prefect flow run and plain calls anywhere else. The index stands in a throw-away store, in production's, or in memory alone,
where it is searched exactly.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from uuid import uuid4

from kbgate.tasks import stages
from kbgate.tasks.baseline.review import baseline_at
from kbgate.tasks.clock import Clock
from kbgate.tasks.comparison.wordings import earlier_wordings
from kbgate.tasks.conclusions import Evaluation
from kbgate.tasks.diagnosis.diagnosis import LIMIT
from kbgate.tasks.domain import Cases, Index, Inputs, Material, Mode, Sample
from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.gate.policy import policy_fingerprint
from kbgate.tasks.identity import identity_of, runs_of
from kbgate.tasks.index.confirmation import begun
from kbgate.tasks.index.fingerprint import golden_fingerprint, index_fingerprint, pipeline_of, settings_fingerprint
from kbgate.tasks.index.provenance import provenance_of
from kbgate.tasks.index.store import build_rows, reopen, temporary_store
from kbgate.tasks.results import Run
from kbgate.tasks.retrieval import needs_vectors, versions_of
from kbgate.tasks.runs.arrivals import arrivals
from kbgate.tasks.runs.history import previous_run
from kbgate.tasks.schema import Counts, Fingerprints
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Vectors

VECTORS = "vectors"
"""The folder of the vector cache in kbgate's home."""
Paper = tuple[Cases, Vectors]
"""Cases to ask, with a vector each, in their order."""
Host = Callable[[str], AbstractContextManager[str]]
"""Gives a build its store: a throw-away folder, or a place in production."""


@contextlib.contextmanager
def in_memory(build: str) -> Iterator[str]:
    """The host of an index that has no store: it is searched exactly."""
    yield ""


def load(suite: Suite, home: Path, baseline_ref: str = "") -> Inputs:
    """A suite's cards, cases and baseline (of a commit, where one is named), held against each other.

    Where a commit is named, a change is judged by it: its cases must also pass as that commit's baseline words them.
    """
    home.mkdir(parents=True, exist_ok=True)  # a home that cannot be written is told now, not after the work
    kb, golden = stages.load_cards(suite), stages.load_golden(suite)
    baseline = baseline_at(suite, baseline_ref) if baseline_ref else stages.read_baseline(suite)
    vanished = stages.check_inputs(suite, kb, golden, baseline)
    return Inputs(suite, kb, golden, baseline, vanished, judges_edits=bool(baseline_ref))


def check(suite: Suite) -> Inputs:
    """A suite's files, nothing asked; raises `InputError` with every mistake of cards, cases and baseline at once.

    Where bad cards are rejected an exam goes on without them, and so does this.
    """
    kb, golden, baseline = stages.load_cards(suite), stages.load_golden(suite), None
    problems: list[Problem] = []
    try:
        baseline = stages.read_baseline(suite)
    except InputError as error:
        problems += error.problems
    try:
        stages.check_inputs(suite, kb, golden, baseline, strict=True)
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(problems)
    return Inputs(suite, kb, golden, baseline)


def prepare(inputs: Inputs, home: Path, sample: Sample = Sample.EACH_RUN) -> Material:
    """Cards to chunks, chunks to rows, rows to vectors, where the method looks at any.

    `sample`: how many of the vectors an exam holds against the model.
    """
    suite = inputs.suite
    chunks = stages.chunk(suite, inputs.kb)
    rows = build_rows(suite, inputs.kb, chunks)
    model = stages.identify_model(suite) if needs_vectors(suite) else None
    vectors = stages.embed_rows(suite, model, rows, home / VECTORS)
    versions = versions_of(suite, rows)
    return Material(
        rows=rows,
        vectors=vectors,
        model=model,
        chunks=len(chunks),
        fingerprint=index_fingerprint(suite, rows, model, versions),
        settings=settings_fingerprint(suite, model, versions),
        sample=sample,
    )


def material_of(suite: Suite, index: Index) -> Material:
    """What a standing index was made of, from what it holds."""
    model = stages.identify_model(suite) if needs_vectors(suite) else None
    versions = versions_of(suite, index.rows)
    return Material(
        rows=index.rows,
        vectors=index.vectors,
        model=model,
        chunks=sum(len(chunks) for chunks in index.rows.chunks),
        fingerprint=index_fingerprint(suite, index.rows, model, versions),
        settings=settings_fingerprint(suite, model, versions),
    )


def embed(inputs: Inputs, material: Material, asked: Cases, home: Path) -> Vectors:
    """One vector per case asked, in their order."""
    vectors = stages.embed_queries(inputs.suite, material.model, asked, home / VECTORS)
    material.questions.update(zip(asked, vectors, strict=True))
    return vectors


def fingerprints_of(inputs: Inputs, material: Material) -> Fingerprints:
    """The four content hashes a verdict is bound to."""
    return Fingerprints(
        index=material.fingerprint,
        golden=golden_fingerprint(inputs.golden.cases),
        policy=policy_fingerprint(inputs.suite),
        baseline=inputs.baseline.fingerprint if inputs.baseline else "",
    )


def evaluate(
    inputs: Inputs,
    material: Material,
    asked: Cases,
    home: Path,
    clock: Clock,
    *,
    host: Host | Index | None = None,
    touched: tuple[str, ...] | None = None,
    limit: int = LIMIT,
) -> Evaluation:
    """Ingest, retrieve, score, compare, judge, diagnose.

    `clock`: when this is, and the instant at which cards have to be valid. `host`: where production builds its candidate, read
    back through a new client, or an index that stands and is asked as it is; a throw-away store if None. `touched`: cases
    beside the fast subset, judged and left out of its means; None for a full run. `limit`: golds the diagnosis looks into.
    """
    suite, identity, run_id = inputs.suite, identity_of(inputs.suite), f"{clock.now:%Y%m%dT%H%M%SZ}-{uuid4().hex[:6]}"
    build = host.build if isinstance(host, Index) else f"{identity.key}-{material.fingerprint}-{run_id}"
    mode, fingerprints = Mode.FULL if touched is None else Mode.FAST, fingerprints_of(inputs, material)
    papers, last = _papers(inputs, material, asked, mode, home), previous_run(home, identity.keys, mode, fingerprints.golden)
    with begun(suite, material, {**inputs.golden.cases, **papers[-1][0]}, run_id, home / VECTORS) as look:
        run, earlier = _ask(inputs, material, papers, clock.as_of, mode, host, build)
        exam = stages.score_and_compare(inputs, asked, run, clock, touched=touched or (), previous=last, earlier=earlier)
        diagnosis = stages.diagnose(exam, inputs, material, papers[0][1], clock.as_of, home, limit)
        stages.confirm_vectors(look)
    provenance = provenance_of(suite.folder, material.model, material.settings, pipeline_of(suite))
    exam = dataclasses.replace(exam, provenance=provenance, causes=diagnosis.causes if suite.acceptance else exam.causes)
    return Evaluation(
        exam=exam,
        verdict=stages.judge(exam),
        run_id=run_id,
        build=build,
        folder=runs_of(home, suite) / run_id,
        fingerprints=fingerprints,
        provenance=provenance,
        counts=counts_of(inputs, material),
        arrivals=arrivals(inputs, home),
        diagnosis=diagnosis,
    )


def counts_of(inputs: Inputs, material: Material) -> Counts:
    """How much there was."""
    return Counts(cards=len(inputs.kb.cards), chunks=material.chunks, rows=len(material.rows), cases=len(inputs.golden.cases))


def _papers(inputs: Inputs, material: Material, asked: Cases, mode: Mode, home: Path) -> list[Paper]:
    """The cases, and where any were edited a second paper: these as they were worded before."""
    wordings = earlier_wordings(inputs.golden.cases, inputs.baseline, mode, inputs.judges_edits)
    return [(cases, embed(inputs, material, cases, home)) for cases in (asked, wordings) if cases or cases is asked]


def _ask(
    inputs: Inputs,
    material: Material,
    papers: Sequence[Paper],
    as_of: dt.datetime,
    mode: Mode,
    host: Host | Index | None,
    build: str,
) -> tuple[Run, Run | None]:
    """Every case of one paper or two asked once, of one index, where its host has it."""
    suite = inputs.suite

    def ask(index: Index) -> tuple[Run, Run | None]:
        runs = [stages.retrieve(suite, index, asked, questions, as_of, mode) for asked, questions in papers]
        return runs[0], runs[1] if len(runs) > 1 else None

    if isinstance(host, Index):
        return ask(host)
    if host is in_memory or (host is None and not needs_vectors(suite)):
        # Words are ranked from the texts: a throw-away store would be filled and never asked.
        return ask(Index(material.rows, material.vectors))
    with (host or temporary_store)(build) as store:
        index = stages.ingest(suite, material.rows, material.vectors, store, build)
        return ask(reopen(index) if host else index)
