"""The exam: one suite, from its files to a verdict.

`run` is the body, the same with and without Prefect. `flows.evaluate.evaluate` is that body as a Prefect flow; importing it
imports Prefect, importing this module does not.
"""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

from flows import publish
from tasks import stages
from tasks.domain import Evaluation, Exam

Floors = dict[str, float]


def run(suite: str, fast: bool = False, floors: Floors | None = None, home: str = ".kbgate") -> Evaluation:
    """Evaluate one suite folder and write its run's files; returns the evaluation with its verdict."""
    started = dt.datetime.now(dt.UTC)
    Path(home).mkdir(parents=True, exist_ok=True)  # a home that cannot be written is told now, not after the work
    evaluation = examine(Path(suite), fast, floors or {}, Path(home), started)
    publish.publish(evaluation, Path(home))
    return evaluation


def examine(folder: Path, fast: bool, floors: Floors, home: Path, started: dt.datetime) -> Evaluation:
    """The pipeline: load, chunk, embed, ingest, retrieve, score, compare, judge."""
    suite = stages.load_suite(folder, floors)
    kb, golden = stages.load_cards(suite), stages.load_golden(suite)
    baseline = stages.read_baseline(suite)
    vanished = stages.check_inputs(suite, kb, golden, baseline)
    asked = stages.select_fast(golden.cases, suite.fast) if fast else golden.cases
    as_of = started.date() if suite.as_of == "today" else suite.as_of

    chunks = stages.chunk(suite, kb)
    rows, members = stages.build_rows(suite, kb, chunks)
    model = stages.identify_model(suite)
    vectors = stages.embed_rows(suite, model, rows, home / "vectors")
    questions = stages.embed_queries(suite, model, asked, home / "vectors")
    fingerprints = {
        "index": stages.index_fingerprint(suite, rows, members, model, stages.VERSIONS),
        "golden": stages.golden_fingerprint(golden.cases),
        "policy": stages.policy_fingerprint(suite),
        "baseline": baseline.fingerprint if baseline else "",
    }
    with stages.temporary_store() as store:
        index = stages.ingest(suite, rows, members, vectors, fingerprints["index"], store)
        answers = stages.retrieve(suite, index, asked, questions, as_of, "fast" if fast else "full")
    scores = stages.score(suite, kb, asked, answers)
    comparison = stages.compare(suite, golden.cases, asked, answers, scores, baseline)
    exam = Exam(suite, kb, asked, golden.cases, baseline, answers, scores, comparison, vanished)
    counts = {"cards": len(kb.cards), "chunks": len(chunks), "rows": len(rows), "cases": len(golden.cases)}
    run_id = f"{started:%Y%m%dT%H%M%SZ}-{uuid4().hex[:6]}"
    return Evaluation(
        exam=exam,
        verdict=stages.judge(exam),
        run_id=run_id,
        folder=home / "runs" / suite.name / run_id,
        started=started,
        as_of=as_of,
        fingerprints=fingerprints,
        provenance=stages.provenance_of(suite.folder, model, counts),
    )


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        return publish.as_flow(run, name)
    raise AttributeError(name)


def home() -> Path:
    """Where runs, vectors and history are kept: $KBGATE_HOME, or .kbgate in the current folder."""
    return Path(os.environ.get("KBGATE_HOME") or ".kbgate")
