"""One run's files: verdict.json, report.md, run.parquet, scores.parquet, run.trec and qrels.trec.

Each file is replaced at once; verdict.json is written last, so that a folder which holds one holds the others too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from kbgate.tasks.domain import Evaluation, Run
from kbgate.tasks.index.fingerprint import kb_fingerprint
from kbgate.tasks.records import canonical, digest, replacing, write_text
from kbgate.tasks.results import NightlyRow, Result
from kbgate.tasks.tables import rows_of

VERDICT_SCHEMA = 1
_WRITTEN_LATER = ("verdict.json", "comment.md", "label_review.csv")
_TREC_DEPTH = 1000


def verdict_document(evaluation: Evaluation) -> dict[str, Any]:
    """The verdict as JSON values, by `reports/schemas/verdict.v1.schema.json`: versioned, without NaN."""
    exam, verdict = evaluation.exam, evaluation.verdict
    comparison, changes, gold = exam.comparison, exam.comparison.changes, exam.scores.placements["ranks"]

    def changed(kind: str) -> list[str]:
        return changes.loc[changes["change"] == kind, "case"].tolist()

    return {
        "schema": VERDICT_SCHEMA,
        "suite": exam.suite.name,
        "run": evaluation.run_id,
        "build": evaluation.build,
        "time": evaluation.started.isoformat(timespec="seconds"),
        "as_of": evaluation.as_of.isoformat(),
        "mode": exam.run.mode,
        "method": exam.run.method,
        "top_k": exam.suite.top_k,
        "verdict": verdict.name,
        "exit_code": verdict.exit_code,
        "code": verdict.code,
        "provisional": verdict.provisional,
        "reasons": [
            {"check": r.check, "level": r.level, "sentence": r.sentence, "cases": list(r.cases), "code": r.code}
            for r in verdict.reasons
        ],
        "fingerprints": dict(evaluation.fingerprints),
        "kb": kb_fingerprint(exam.kb.cards),
        "newly_failing": changed("newly_failing"),
        "newly_passing": changed("newly_passing"),
        "slipped": changed("slipped"),
        "unbaselined_failing": changed("unbaselined_failing"),
        "access_widened": changed("access_widened"),
        "cases": {
            "asked": len(exam.asked),
            "compared": len(comparison.common) if exam.baseline else 0,
            "permission_only": int(sum(not ranks for ranks in gold) - (exam.asked["grades"].map(len) == 0).sum()),
            "touched": list(exam.touched),
            "new": list(comparison.new),
            "removed": list(comparison.removed),
            "edited": list(comparison.edited),
        },
        "arrivals": {k: list(v) if isinstance(v, tuple) else v for k, v in vars(evaluation.arrivals).items()}
        if evaluation.arrivals
        else None,
        "diagnosis": {**_plain(dataclasses.asdict(evaluation.diagnosis)), "doubts": len(evaluation.diagnosis.doubts)},
        "outcomes": {str(k): int(v) for k, v in sorted(exam.run.answers["outcome"].value_counts().items())},
        "extended": int(exam.run.answers["extended"].sum()),
        "figures": [
            {k: v if isinstance(v, str) else _number(v) for k, v in row.items()} for row in rows_of(comparison.figures)
        ],
        "inputs": {
            "suite": exam.suite.given,
            "floors": exam.suite.floors,
            "asked": exam.asked["id"].tolist(),
            "announced": list(exam.announced),
            "explained": list(exam.explained),
            "previous": {"run": exam.previous.run, "means": dict(exam.previous.means)} if exam.previous else None,
        },
        "counts": evaluation.provenance["counts"],
        "provenance": {k: v for k, v in evaluation.provenance.items() if k != "counts"},
    }


def _plain(value: Any) -> Any:
    """Dataclasses as JSON values: tuples are lists, figures rounded."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _number(value) if isinstance(value, float) else value


def summarise(suite: str, result: Result) -> NightlyRow:
    """One suite of a night: its verdict, and the gravest reason or the figure that moved most."""
    if not isinstance(result, Evaluation):
        return NightlyRow(suite, result.name, result.exit_code, result.said)
    if result.verdict.reasons:
        return NightlyRow(suite, result.name, result.exit_code, result.verdict.reasons[0].sentence)
    figures = result.exam.comparison.figures
    own = figures[(figures["lane"] == result.exam.run.method) & (figures["slice"] == "") & figures["delta"].notna()]
    moved = max(rows_of(own), key=lambda row: abs(row["delta"]), default=None)
    worst = f"{moved['metric']} {moved['delta']:+.3f}" if moved and moved["delta"] else "nothing changed"
    return NightlyRow(suite, result.name, result.exit_code, worst)


def _number(value: float) -> float | None:
    return None if not math.isfinite(value) else int(value) if value == int(value) else round(value, 6)


def write_run(evaluation: Evaluation, document: dict[str, Any], report: str) -> None:
    """Write the run's files into its folder."""
    folder, exam = evaluation.folder, evaluation.exam
    folder.mkdir(parents=True, exist_ok=True)
    _write_parquet(run_table(exam.run), folder / "run.parquet")
    _write_parquet(exam.scores.figures, folder / "scores.parquet")
    _write_parquet(exam.kb.cards[["id", "hash"]], folder / "cards.parquet")
    write_text(folder / "report.md", report)
    write_text(folder / "run.trec", trec_run(exam.run))
    write_text(folder / "qrels.trec", trec_judgments(exam.scores.placements))
    document = {**document, "files": digests_of(folder)}
    document["seal"] = seal_of(document)
    write_text(folder / "verdict.json", json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def digests_of(folder: Path) -> dict[str, str]:
    """sha256 of every file of a run but verdict.json, and what is written after it: a comment, a review to fill in."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in _WRITTEN_LATER and not path.name.startswith(".")
    }


def seal_of(document: Mapping[str, Any]) -> str:
    """sha256 of a verdict document without its seal."""
    return digest({name: value for name, value in document.items() if name != "seal"})


def _write_parquet(table: pd.DataFrame, path: Path) -> None:
    with replacing(path) as temporary:
        table.to_parquet(temporary, index=False)


def run_table(run: Run) -> pd.DataFrame:
    """One row per (case, card) that any lane held: rank and score of the method, rank in each lane, and how the case went.

    A card only a lane held has no rank; a case that brought nothing back has one row without a card.
    """
    wide = run.hits.pivot(index=["case", "card"], columns="lane", values=["rank", "score"])
    table = pd.DataFrame(index=wide.index)
    lanes = sorted(set(run.hits["lane"]) - {run.method})
    table["rank"] = wide[("rank", run.method)] if len(wide) else pd.Series(dtype=float)
    table["score"] = wide[("score", run.method)] if len(wide) else pd.Series(dtype=float)
    for lane in lanes:
        table[f"rank_{lane}"] = wide[("rank", lane)]
        table[f"score_{lane}"] = wide[("score", lane)]
    table = table.reset_index()
    table["unit"] = table["card"]
    answers = run.answers[["case", "outcome", "ms", "eligible", "extended", "detail", "predicate"]].copy()
    answers["lane_ms"] = run.answers["lane_ms"].map(canonical)
    table = answers.merge(table, on="case", how="left").sort_values(["case", "rank", "card"], ignore_index=True)
    ranks = [name for name in table.columns if name.startswith("rank")]
    table[ranks] = table[ranks].astype("Int32")
    first = ["case", "rank", "unit", "card", "score"]
    return table[[*first, *(name for name in table.columns if name not in first)]]


def trec_run(run: Run) -> str:
    """The ranking in TREC form. Scores fall strictly with rank: trec_eval reads float32 and breaks ties by descending id."""
    own = run.hits[(run.hits["lane"] == run.method) & (run.hits["rank"] <= _TREC_DEPTH)].sort_values(["case", "rank"])
    lines = (
        f"{_token(case)} Q0 {_token(card)} {rank} {_TREC_DEPTH + 1 - rank} {run.method}\n"
        for case, card, rank in zip(own["case"], own["card"], own["rank"], strict=True)
    )
    return "".join(lines)


def trec_judgments(placements: pd.DataFrame) -> str:
    """The judgments in TREC form, only what each asker may see."""
    return "".join(
        f"{_token(case)} 0 {_token(card)} {grade}\n"
        for case, grades in zip(placements["case"], placements["grades"], strict=True)
        for card, grade in sorted(grades.items())
    )


def _token(name: str) -> str:
    """An id without white space, as TREC files need it; `%` is escaped too, so that it reads back."""
    return re.sub(r"[\s%]", lambda found: quote(found.group()), name)
