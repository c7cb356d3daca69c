"""The accepted scores of a suite: three files, reviewed like code, written all at once or not at all.

baseline.json holds means, fingerprints and digests of the other two, baseline.cases.jsonl a line per case,
baseline.cards.jsonl a line per card (Parquet above 20,000 cards). Files that disagree with each other are refused: a row
removed by hand must never read as a case that was never there.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from kbgate.tasks.baseline.anchor import anchor_of, anchored_by, refuse_creep
from kbgate.tasks.domain import Baseline, Evaluation
from kbgate.tasks.errors import BaselineDamaged, InputError, Problem, Refused, Unmeasured
from kbgate.tasks.records import canonical, digest, parse_json, read_jsonl, read_text, sync_folder, write_text
from kbgate.tasks.registry import METRICS, metric_of
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import rows_of

SCHEMA = 2
SUMMARY, CASES, CARDS, CARDS_PARQUET = (
    "baseline.json", "baseline.cases.jsonl", "baseline.cards.jsonl", "baseline.cards.parquet",
)  # fmt: skip
FILES = (SUMMARY, CASES, CARDS, CARDS_PARQUET)
PARQUET_ABOVE = 20_000
_COMMIT = ".baseline.commit"
"""A folder that holds a complete new baseline while its files are moved into place; whoever finds it finishes the move."""
_SUMMARY_KEYS = {
    "schema", "suite", "accepted", "top_k", "unit", "method", "metric_versions", "means", "lanes", "counts",
    "fingerprints", "provenance", "digests", "anchor",
}  # fmt: skip
_CASE_KEYS = {"id", "hash", "cluster", "canary", "tier_gold", "outcome", "scores", "gold_ranks", "top", "kth", "anchor"}
_CARD_KEYS = {"id", "hash", "tier", "domain"}

Rows = dict[str, dict[str, Any]]


def read_baseline(suite: Suite) -> Baseline | None:
    """The committed baseline, None where there is none; raises `BaselineDamaged` where it cannot be trusted."""
    folder = suite.folder
    _finish_commit(folder)
    present = [name for name in FILES if (folder / name).exists()]
    if not present:
        return None
    try:
        if SUMMARY not in present or CASES not in present or len(present) != 3:
            raise _damaged(present[0], f"stands without its fellows (found {', '.join(present)})")
        summary = _read_summary(folder)
        cases = _read_rows(folder / CASES, _CASE_KEYS)
        baseline = Baseline(summary, cases, _read_cards(folder, present), "")
        _agree(baseline)
    except InputError as error:
        where = shlex.quote(suite.given or str(folder))
        restore = f"restore the files with: git checkout -- {where}/baseline.*"
        anew = f'or move them away and accept anew with: kbgate baseline update {where} --reason "..."'
        raise BaselineDamaged([*error.problems, Problem(SUMMARY, 0, f"{restore}; {anew}")]) from None
    return dataclasses.replace(baseline, fingerprint=digest([summary, _digests(summary, cases, baseline.cards)], 16))


def _damaged(file: str, sentence: str, line: int = 0) -> BaselineDamaged:
    return BaselineDamaged([Problem(file, line, sentence)])


def _read_summary(folder: Path) -> dict[str, Any]:
    try:
        summary = parse_json(read_text(folder / SUMMARY))
    except ValueError as error:
        raise _damaged(SUMMARY, f"is not valid JSON ({error})") from None
    schema = summary.get("schema") if isinstance(summary, dict) else None
    if schema != SCHEMA:
        newer = isinstance(schema, int) and schema > SCHEMA
        next_step = "upgrade kbgate" if newer else "it is of an older kbgate, or damaged"
        raise _damaged(SUMMARY, f"has schema {schema!r}; this kbgate reads {SCHEMA}: {next_step}")
    if set(summary) != _SUMMARY_KEYS:
        odd = sorted(set(summary) ^ _SUMMARY_KEYS)
        raise _damaged(SUMMARY, f"has missing or unknown keys: {', '.join(odd)}")
    return dict(summary)


def _read_rows(path: Path, keys: set[str]) -> Rows:
    records, problems = read_jsonl(path)
    rows: Rows = {}
    for record in records:
        name = record.content.get("id")
        if set(record.content) != keys or not isinstance(name, str):
            problems.append(Problem(path.name, record.line, f"needs the keys {', '.join(sorted(keys))}, and a text as id"))
        elif name in rows:
            problems.append(Problem(path.name, record.line, f"id '{name}' is there twice"))
        else:
            rows[name] = record.content
    if problems:
        raise BaselineDamaged(problems)
    return rows


def _read_cards(folder: Path, present: list[str]) -> Rows:
    if CARDS in present:
        return _read_rows(folder / CARDS, _CARD_KEYS)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows: list[dict[str, Any]] = pq.read_table(folder / CARDS_PARQUET).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise _damaged(CARDS_PARQUET, f"cannot be read ({error})") from None
    if any(set(row) != _CARD_KEYS for row in rows):
        raise _damaged(CARDS_PARQUET, f"needs the columns {', '.join(sorted(_CARD_KEYS))}")
    return {row["id"]: row for row in rows}


def _digests(summary: Mapping[str, Any], cases: Rows, cards: Rows) -> dict[str, str]:
    """Over content, not bytes: line ends and the order of lines and keys may change on the way through git."""
    return {
        "summary": digest({name: value for name, value in summary.items() if name != "digests"}),
        "cases": digest([cases[case] for case in sorted(cases)]),
        "cards": digest([cards[card] for card in sorted(cards)]),
    }


def _agree(baseline: Baseline) -> None:
    """The three files say the same, and what they say is what was written."""
    summary = baseline.summary
    if summary["digests"] != _digests(summary, baseline.cases, baseline.cards):
        raise _damaged(SUMMARY, f"and the lines of {CASES} and {CARDS} disagree: one was edited, added or removed by hand")
    if summary["means"] != _means(baseline.cases):
        raise _damaged(SUMMARY, f"holds means that are not those of {CASES}")


def _means(cases: Rows) -> dict[str, dict[str, float]]:
    """The mean of each figure over the cases that have it, and their number."""
    found: dict[str, list[float]] = {}
    for case in sorted(cases):
        for key, value in cases[case]["scores"].items():
            found.setdefault(key, []).append(value)
    return {key: {"mean": round(sum(values) / len(values), 6), "n": len(values)} for key, values in found.items()}


def may_be_accepted(evaluation: Evaluation, accept_regression: bool) -> None:
    """Raise `Refused` unless the run may become the baseline: full, complete, and green or knowingly accepted.

    A run that could not be compared is not known to be no regression, so it is accepted knowingly or not at all; only where
    there is no baseline yet is there nothing to regress from.
    """
    verdict, run = evaluation.verdict, evaluation.exam.run
    if run.mode != "full":
        raise Refused("a baseline comes from a full run, never from the fast subset")
    if verdict.name == "ERROR":
        raise Unmeasured(f"there is nothing to accept: {verdict.reasons[0].sentence}")
    for reason in verdict.reasons:
        if reason.check in ("completeness", "finite"):
            raise Refused(f"the run is not complete: {reason.sentence}")
        if reason.check == "vanished_gold":
            raise Refused(f"{reason.sentence}; give these cases another gold, or remove them, and then accept")
        if reason.level == "inconclusive" and reason.code not in ("no_baseline", "incomparable"):
            raise Refused(f"the run is inconclusive: {reason.sentence}")
    against = [r for r in verdict.reasons if r.level == "critical" or r.code == "incomparable"]
    if against and not accept_regression:
        sentence = against[0].sentence
        raise Refused(f"the run is {verdict.name} ({sentence}); fix it, or accept it knowingly with --accept-regression")


def write_baseline(evaluation: Evaluation, reason: str, accept_regression: bool, anchor: bool = False) -> Baseline:
    """Accept a run as the suite's baseline; all three files are replaced, or none.

    `anchor`: what later baselines are held against together; the first baseline is one by itself.
    """
    if not reason.strip():
        raise Refused("a baseline needs a reason; it stays in the file for whoever reviews it")
    may_be_accepted(evaluation, accept_regression)
    exam = evaluation.exam
    refuse_creep(evaluation, anchor, accept_regression)
    anchored = anchor or exam.baseline is None
    cases, cards = _case_rows(evaluation, anchored), _card_rows(exam.kb.cards)
    failing = sorted(exam.comparison.changes.query("change == 'newly_failing'")["case"])
    summary = {
        "schema": SCHEMA,
        "suite": exam.suite.name,
        "accepted": {
            "on": evaluation.started.date().isoformat(),
            "reason": reason.strip(),
            "verdict": evaluation.verdict.name,
            "accepted_regression": failing if accept_regression else [],
            "in_spite_of": [r.sentence for r in evaluation.verdict.reasons if r.code != "no_baseline"],
        },
        "top_k": exam.suite.top_k,
        "unit": exam.suite.unit,
        "method": exam.run.method,
        "metric_versions": {part.name: part.version for part in METRICS.values()},
        "means": _means(cases),
        "lanes": _lane_means(exam.scores.figures, exam.run.method),
        "counts": evaluation.provenance["counts"],
        "fingerprints": {name: evaluation.fingerprints[name] for name in ("index", "golden", "policy")},
        "provenance": {k: v for k, v in evaluation.provenance.items() if k != "counts"},
        "anchor": anchored_by(evaluation, reason) if anchored or exam.baseline is None else exam.baseline.summary["anchor"],
    }
    summary["digests"] = _digests(summary, cases, cards)
    _commit(exam.suite.folder, _files(summary, cases, cards))
    accepted = read_baseline(exam.suite)
    assert accepted is not None, "the files were just written"
    return accepted


def _case_rows(evaluation: Evaluation, anchored: bool) -> Rows:
    exam = evaluation.exam
    own = exam.scores.figures[exam.scores.figures["lane"] == exam.run.method]
    scores: dict[str, dict[str, float]] = {}
    for case, key, value in zip(own["case"], own["metric"], own["value"], strict=True):
        if metric_of(key)[0].stored:
            scores.setdefault(case, {})[key] = float(value)
    known = exam.baseline.cases if exam.baseline else {}
    rows: Rows = {}
    for place in rows_of(exam.scores.placements):
        rows[place["case"]] = {
            "id": place["case"],
            "scores": scores.get(place["case"], {}),
            "anchor": anchor_of(exam, place, scores, known, anchored),
            "gold_ranks": place["ranks"],
            **{name: place[name] for name in ("hash", "cluster", "canary", "tier_gold", "outcome", "top", "kth")},
        }
    return rows


def _card_rows(cards: pd.DataFrame) -> Rows:
    return {row["id"]: row for row in rows_of(cards[["id", "hash", "tier", "domain"]])}


def _lane_means(figures: pd.DataFrame, method: str) -> dict[str, dict[str, dict[str, float]]]:
    lanes: dict[str, dict[str, dict[str, float]]] = {}
    others = figures[figures["lane"] != method]
    means = others.groupby(["lane", "metric"], as_index=False)["value"].agg(["mean", "size"])
    for row in rows_of(means):
        lanes.setdefault(row["lane"], {})[row["metric"]] = {"mean": round(row["mean"], 6), "n": row["size"]}
    return lanes


def _files(summary: Mapping[str, Any], cases: Rows, cards: Rows) -> dict[str, str | Rows]:
    lines = {
        SUMMARY: json.dumps(summary, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        CASES: "".join(canonical(cases[case]) + "\n" for case in sorted(cases)),
    }
    if len(cards) > PARQUET_ABOVE:
        return {**lines, CARDS_PARQUET: cards}
    return {**lines, CARDS: "".join(canonical(cards[card]) + "\n" for card in sorted(cards))}


def _commit(folder: Path, files: Mapping[str, str | Rows]) -> None:
    """Write every file into a folder of its own, rename that folder (the commit point), then move the files home."""
    staged = folder / ".baseline.staged"
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir()
    for name, content in files.items():
        if isinstance(content, str):
            write_text(staged / name, content)
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pylist([content[card] for card in sorted(content)]), staged / name)
    staged.rename(folder / _COMMIT)
    sync_folder(folder)
    _finish_commit(folder)


def _finish_commit(folder: Path) -> None:
    commit = folder / _COMMIT
    if not commit.is_dir():
        return
    names = {path.name for path in commit.iterdir()}
    for name in sorted(names):
        (commit / name).replace(folder / name)
    for old, new in ((CARDS, CARDS_PARQUET), (CARDS_PARQUET, CARDS)):
        if new in names:
            (folder / old).unlink(missing_ok=True)
    sync_folder(folder)
    commit.rmdir()
