"""One exam in this process, from a folder of files to what the gate and the diagnosis say: what the drill sits again and again.

Searched exactly, unless the suite sets parameters of an index: then a real one is built.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from kbgate.tasks.baseline.files import read_baseline, write_baseline
from kbgate.tasks.diagnosis.diagnosis import diagnose
from kbgate.tasks.domain import Evaluation, Exam, Index, Inputs, Material
from kbgate.tasks.errors import InputError, KbgateError
from kbgate.tasks.findings import Finding
from kbgate.tasks.gate import judge
from kbgate.tasks.index.chunking import chunk
from kbgate.tasks.index.embedding import embed_queries, embed_rows, identify_model
from kbgate.tasks.index.fingerprint import (
    golden_fingerprint,
    index_fingerprint,
    pipeline_of,
    policy_fingerprint,
    settings_fingerprint,
)
from kbgate.tasks.index.provenance import provenance_of
from kbgate.tasks.index.store import build_rows, ingest, temporary_store
from kbgate.tasks.index.vectors import Vectors
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.golden import check_inputs, load_golden
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.retrieval.run import retrieve
from kbgate.tasks.runs.verification import exam_of
from kbgate.tasks.settings import IndexSettings
from kbgate.tasks.stages import VERSIONS
from kbgate.tasks.tables import rows_of


@dataclass(frozen=True)
class Sitting:
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


def sit(folder: Path, home: Path, limit: int) -> Sitting:
    """Examine a suite's folder; `limit`: golds to look into."""
    try:
        inputs = _load(folder)
        exam, material, vectors = _examine(inputs, home)
    except InputError as error:
        return Sitting("bad input", tuple(("input", str(problem)) for problem in error.problems))
    except KbgateError as error:
        return Sitting("ERROR", (("completeness", str(error)),))
    verdict = judge(exam)
    told = diagnose(exam, inputs, material, vectors, exam.today, home, limit)
    passing, held = _passing(exam)
    reasons = tuple((r.check, r.sentence) for r in verdict.reasons if r.level != "advisory")
    return Sitting(verdict.name, reasons, passing, held, told.findings, told.trouble)


def accept(folder: Path, home: Path) -> None:
    """Make what a suite's folder holds now its own baseline, whatever it is worth."""
    inputs = _load(folder)
    exam, material, _ = _examine(inputs, home)
    now = dt.datetime.now(dt.UTC)
    run = f"{now:%Y%m%dT%H%M%SZ}-{uuid4().hex[:6]}"
    counts = {"cards": len(inputs.kb.cards), "chunks": material.chunks, "rows": len(material.rows), "cases": len(exam.golden)}
    fingerprints = {
        "index": material.fingerprint,
        "golden": golden_fingerprint(exam.golden),
        "policy": policy_fingerprint(inputs.suite),
        "baseline": "",
    }
    provenance = {
        **provenance_of(folder, material.model, counts),
        "settings": material.settings,
        "pipeline": pipeline_of(inputs.suite),
    }
    evaluation = Evaluation(exam, judge(exam), run, "", folder, now, exam.today, fingerprints, provenance)
    write_baseline(evaluation, "what the drill starts from", accept_regression=True)


def _load(folder: Path) -> Inputs:
    suite = load_suite(folder)
    kb, golden, baseline = load_cards(suite), load_golden(suite), read_baseline(suite)
    return Inputs(suite, kb, golden, baseline, check_inputs(suite, kb, golden, baseline))


def _examine(inputs: Inputs, home: Path) -> tuple[Exam, Material, Vectors]:
    suite, cases = inputs.suite, inputs.golden.cases
    chunks = chunk(suite, inputs.kb)
    rows, members = build_rows(suite, inputs.kb, chunks)
    model = identify_model(suite)
    vectors = embed_rows(suite, model, rows, home / "vectors")
    fingerprint = index_fingerprint(suite, rows, members, model, VERSIONS)
    material = Material(rows, members, vectors, model, len(chunks), fingerprint, settings_fingerprint(suite, model, VERSIONS))
    questions = embed_queries(suite, model, cases, home / "vectors")
    if suite.index == IndexSettings():
        run = retrieve(suite, Index(rows, members, vectors, "", ""), cases, questions, suite.day, "full")
    else:
        with temporary_store("drill") as store:
            run = retrieve(suite, ingest(suite, rows, members, vectors, store, "drill"), cases, questions, suite.day, "full")
    return exam_of(inputs, cases, run, suite.day), material, questions


def _passing(exam: Exam) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Which cases pass, and which golds stand, by looking at the rankings and nothing else."""
    hits = exam.run.hits
    top = hits[(hits["lane"] == exam.run.method) & (hits["rank"] <= exam.suite.top_k)]
    found: dict[str, set[str]] = {}
    for case, card in zip(top["case"], top["card"], strict=True):
        found.setdefault(case, set()).add(card)
    passing, held = set(), set()
    for case in rows_of(exam.golden):
        own = found.get(case["id"], set())
        held |= {(case["id"], card) for group in case["groups"] for card in group if card in own}
        if case["groups"] and all(own & set(group) for group in case["groups"]):
            passing.add(case["id"])
    return frozenset(passing), frozenset(held)
