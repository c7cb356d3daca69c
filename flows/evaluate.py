"""The exam: one suite, from its files to a verdict.

`run` is the body, the same with and without Prefect. `kbgate.flows.evaluate.evaluate` is that body as a Prefect flow;
importing it imports Prefect, importing this module does not.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd

from kbgate.flows import publish
from kbgate.tasks import stages
from kbgate.tasks.domain import Evaluation, Exam, Inputs, Material
from kbgate.tasks.settings import Suite

Floors = dict[str, float]
Host = Callable[[str], AbstractContextManager[str]]
"""Gives a build its store: a throw-away folder, or a place in production."""


def run(suite: str, fast: bool = False, floors: Floors | None = None, home: str = ".kbgate") -> Evaluation:
    """Evaluate one suite folder and write its run's files; returns the evaluation with its verdict."""
    inputs = load(stages.load_suite(Path(suite), floors), Path(home))
    cases = inputs.golden.cases
    asked = stages.select_fast(cases, inputs.suite.fast) if fast else cases
    evaluation = examine(inputs, prepare(inputs, Path(home)), asked, Path(home), "fast" if fast else "full")
    publish.publish(evaluation, Path(home))
    return evaluation


def load(suite: Suite, home: Path, baseline_ref: str = "") -> Inputs:
    """A suite's cards, cases and baseline (of a commit, where one is named), held against each other."""
    publish.refuse_foreign_flows()
    home.mkdir(parents=True, exist_ok=True)  # a home that cannot be written is told now, not after the work
    kb, golden = stages.load_cards(suite), stages.load_golden(suite)
    baseline = stages.baseline_at(suite, baseline_ref) if baseline_ref else stages.read_baseline(suite)
    return Inputs(suite, kb, golden, baseline, stages.check_inputs(suite, kb, golden, baseline))


def prepare(inputs: Inputs, home: Path) -> Material:
    """Cards to chunks, chunks to rows, rows to vectors."""
    suite = inputs.suite
    chunks = stages.chunk(suite, inputs.kb)
    rows, members = stages.build_rows(suite, inputs.kb, chunks)
    model = stages.identify_model(suite)
    vectors = stages.embed_rows(suite, model, rows, home / "vectors")
    fingerprint = stages.index_fingerprint(suite, rows, members, model, stages.VERSIONS)
    settings = stages.settings_fingerprint(suite, model, stages.VERSIONS)
    return Material(rows, members, vectors, model, len(chunks), fingerprint, settings)


def fingerprints_of(inputs: Inputs, material: Material) -> dict[str, str]:
    """The four content hashes a verdict is bound to."""
    return {
        "index": material.fingerprint,
        "golden": stages.golden_fingerprint(inputs.golden.cases),
        "policy": stages.policy_fingerprint(inputs.suite),
        "baseline": inputs.baseline.fingerprint if inputs.baseline else "",
    }


def examine(
    inputs: Inputs,
    material: Material,
    asked: pd.DataFrame,
    home: Path,
    mode: str = "full",
    host: Host | None = None,
    touched: tuple[str, ...] = (),
) -> Evaluation:
    """Ingest, retrieve, score, compare, judge.

    `host`: where production builds its candidate, which is then read back through a new client; a throw-away store if None.
    `touched`: asked cases that are beside the fast subset; they are judged and stay out of its means.
    """
    started, suite = dt.datetime.now(dt.UTC), inputs.suite
    run_id = f"{started:%Y%m%dT%H%M%SZ}-{uuid4().hex[:6]}"
    build = f"{suite.name}-{material.fingerprint}-{run_id}"
    as_of = suite.day
    questions = stages.embed_queries(suite, material.model, asked, home / "vectors")
    with (host or stages.temporary_store)(build) as store:
        index = stages.ingest(suite, material.rows, material.members, material.vectors, store, build)
        index = stages.reopen(index) if host else index
        answers = stages.retrieve(suite, index, asked, questions, as_of, mode)
    scores = stages.score(suite, inputs.kb, asked, answers, inputs.baseline)
    previous = stages.previous_run(home, suite.name, mode, stages.golden_fingerprint(inputs.golden.cases))
    comparison = stages.compare(suite, inputs.golden.cases, asked, answers, scores, inputs.baseline, touched, previous)
    exam = Exam(
        suite=suite,
        kb=inputs.kb,
        asked=asked,
        golden=inputs.golden.cases,
        baseline=inputs.baseline,
        run=answers,
        scores=scores,
        comparison=comparison,
        vanished=inputs.vanished,
        touched=touched,
        announced=inputs.announced,
        previous=previous,
        today=started.date(),
    )
    diagnosis = stages.diagnose(exam, inputs, material, questions, as_of, home)
    if suite.acceptance is not None:
        exam = dataclasses.replace(exam, explained=diagnosis.explained)
    counts = {
        "cards": len(inputs.kb.cards),
        "chunks": material.chunks,
        "rows": len(material.rows),
        "cases": len(inputs.golden.cases),
    }
    return Evaluation(
        exam=exam,
        verdict=stages.judge(exam),
        run_id=run_id,
        build=build,
        folder=home / "runs" / suite.name / run_id,
        started=started,
        as_of=as_of,
        fingerprints=fingerprints_of(inputs, material),
        provenance={
            **stages.provenance_of(suite.folder, material.model, counts),
            "settings": material.settings,
            "pipeline": stages.pipeline_of(suite),
        },
        arrivals=stages.arrivals(inputs, home),
        diagnosis=diagnosis,
    )


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        return publish.as_flow(run, name)
    raise AttributeError(name)


def home() -> Path:
    """Where runs, vectors and history are kept: $KBGATE_HOME, or .kbgate in the current folder."""
    return Path(os.environ.get("KBGATE_HOME") or ".kbgate")
