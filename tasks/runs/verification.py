"""Is a run's verdict what its rankings, the golden set and the baseline say? No model, no store, nothing asked again.

Everything that follows from the rankings is computed anew and held against the files: scores, figures, changes, reasons,
verdict, both TREC files. What cannot follow from them (times, outcomes, provenance, the report's words) is guarded by the
digests that verdict.json holds of every other file and of itself.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from kbgate.tasks.comparison.compare import compare
from kbgate.tasks.comparison.scoring import score
from kbgate.tasks.domain import Evaluation, Exam, Inputs, Previous, Run
from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.gate import judge
from kbgate.tasks.index.fingerprint import golden_fingerprint, kb_fingerprint, policy_fingerprint
from kbgate.tasks.records import parse_json, read_text
from kbgate.tasks.runs.runfiles import digests_of, seal_of, trec_judgments, trec_run, verdict_document
from kbgate.tasks.tables import ANSWER_COLUMNS, HIT_COLUMNS

_ANEW = (
    "verdict", "exit_code", "code", "provisional", "reasons", "newly_failing", "newly_passing", "slipped",
    "unbaselined_failing", "access_widened", "cases", "outcomes", "extended", "figures", "suite", "mode", "method", "top_k",
)  # fmt: skip
"""Parts of verdict.json that follow from the rankings, the golden set and the baseline."""


def read_verdict(folder: Path) -> dict[str, Any]:
    """A run's verdict.json."""
    try:
        return dict(parse_json(read_text(folder / "verdict.json")))
    except (ValueError, TypeError) as error:
        raise InputError([Problem(str(folder / "verdict.json"), 0, f"is no verdict kbgate wrote ({error})")]) from None


def verify(folder: Path, document: Mapping[str, Any], inputs: Inputs) -> list[str]:
    """What differs between a run's files and what follows from its rankings, a sentence each; empty where all agrees.

    Raises `InputError` where golden set, policy, baseline or cards are no longer those of the run.
    """
    try:
        _refuse_other_inputs(document, inputs)
        differences = list(_edited(folder, document))
        run = read_run(folder / "run.parquet", document["method"], document["mode"])
        return [*differences, *_recomputed(folder, document, inputs, run)]
    except (KeyError, TypeError, AttributeError, ValueError, OSError) as error:
        return [f"the run's files cannot be read as kbgate wrote them ({type(error).__name__}: {error})"]


def _refuse_other_inputs(document: Mapping[str, Any], inputs: Inputs) -> None:
    current = {
        "golden": golden_fingerprint(inputs.golden.cases),
        "policy": policy_fingerprint(inputs.suite),
        "baseline": inputs.baseline.fingerprint if inputs.baseline else "",
    }
    problems = [
        Problem(str(inputs.suite.given), 0, f"its {part} was {document['fingerprints'][part] or 'none'} in the run and is "
                f"{value or 'none'} now; check out what the run saw")
        for part, value in current.items()
        if document["fingerprints"][part] != value
    ]  # fmt: skip
    if document["kb"] != kb_fingerprint(inputs.kb.cards):
        problems.append(Problem(str(inputs.suite.given), 0, "its cards are not those of the run; check out what the run saw"))
    if problems:
        raise InputError(problems)


def _edited(folder: Path, document: Mapping[str, Any]) -> Iterator[str]:
    if document.get("seal") != seal_of(document):
        yield "verdict.json is not what was written: its seal does not fit"
    there = digests_of(folder)
    for name in sorted({*there, *document["files"]}):
        if there.get(name) != document["files"].get(name):
            yield f"{name} is not what was written"


def read_run(path: Path, method: str, mode: str) -> Run:
    """The run that run.parquet holds."""
    table = pd.read_parquet(path)
    lanes = {method: ("rank", "score")}
    lanes |= {name[5:]: (name, f"score_{name[5:]}") for name in table.columns if name.startswith("rank_")}
    hits = []
    for lane, (rank, points) in sorted(lanes.items()):
        part = table[table[rank].notna()].sort_values(["case", rank])
        rows = zip(part["case"], part[rank], part["card"], part[points], strict=True)
        hits += [(lane, case, int(place), card, float(x)) for case, place, card, x in rows]
    answers = table.drop_duplicates("case")[list(ANSWER_COLUMNS)].reset_index(drop=True)
    answers["lane_ms"] = answers["lane_ms"].map(json.loads)
    return Run(method, pd.DataFrame(hits, columns=list(HIT_COLUMNS)), answers, mode)


def exam_of(
    inputs: Inputs,
    asked: pd.DataFrame,
    run: Run,
    today: dt.date,
    touched: tuple[str, ...] = (),
    previous: Previous | None = None,
) -> Exam:
    """The exam that a run's rankings make, scored and held against the baseline anew."""
    scores = score(inputs.suite, inputs.kb, asked, run, inputs.baseline)
    cases = inputs.golden.cases
    return Exam(
        suite=inputs.suite,
        kb=inputs.kb,
        asked=asked,
        golden=cases,
        baseline=inputs.baseline,
        run=run,
        scores=scores,
        comparison=compare(inputs.suite, cases, asked, run, scores, inputs.baseline, touched, previous),
        vanished=inputs.vanished,
        touched=touched,
        announced=inputs.announced,
        previous=previous,
        today=today,
    )


def _recomputed(folder: Path, document: Mapping[str, Any], inputs: Inputs, run: Run) -> Iterator[str]:
    cases, touched = inputs.golden.cases, tuple(document["cases"]["touched"])
    asked = cases[cases["id"].isin(set(document["inputs"]["asked"]))].reset_index(drop=True)
    if document["mode"] == "full" and len(asked) != len(cases):
        yield f"verdict.json: a full run asks all {len(cases)} cases, and inputs.asked names {len(asked)}"
    before, started = document["inputs"]["previous"], dt.datetime.fromisoformat(document["time"])
    previous = Previous(before["run"], before["means"]) if before else None
    exam = dataclasses.replace(
        exam_of(inputs, asked, run, started.date(), touched, previous),
        announced=tuple(document["inputs"]["announced"]),
        explained=tuple(document["inputs"]["explained"]),
    )
    evaluation = Evaluation(
        exam, judge(exam), document["run"], document["build"], folder, started, dt.date.fromisoformat(document["as_of"]),
        document["fingerprints"], {**document["provenance"], "counts": document["counts"]},
    )  # fmt: skip
    anew = verdict_document(evaluation)
    for part in _ANEW:
        yield from _differences(part, document[part], anew[part])
    written = pd.read_parquet(folder / "scores.parquet")
    yield from _score_differences(written, exam.scores.figures)
    for name, text in (("run.trec", trec_run(run)), ("qrels.trec", trec_judgments(exam.scores.placements))):
        if sorted((folder / name).read_text(encoding="utf-8").splitlines()) != sorted(text.splitlines()):
            yield f"{name} does not hold the rankings of run.parquet"


def _score_differences(written: pd.DataFrame, anew: pd.DataFrame) -> Iterator[str]:
    key = ["lane", "case", "metric"]
    both = written.merge(anew, on=key, how="outer", suffixes=("_written", "_anew"))
    odd = both[(both["value_written"] - both["value_anew"]).abs().fillna(1) > _ROUNDING]
    for row in odd.head(20).itertuples():
        yield f"scores.parquet: {row.metric} of {row.case} ({row.lane}) says {row.value_written}, is {row.value_anew}"


_ROUNDING = 1e-9


def _differences(place: str, written: Any, anew: Any) -> Iterator[str]:
    """The places where two JSON values differ, lists and objects walked through."""
    if isinstance(written, dict) and isinstance(anew, dict):
        for name in sorted({*written, *anew}):
            yield from _differences(f"{place}.{name}", written.get(name), anew.get(name))
    elif isinstance(written, list) and isinstance(anew, list) and len(written) == len(anew):
        for number, (one, other) in enumerate(zip(written, anew, strict=True)):
            yield from _differences(f"{place}[{number}]", one, other)
    elif written != anew or isinstance(written, bool) != isinstance(anew, bool):
        yield f"verdict.json: {place} says {str(written)[:80]}, is {str(anew)[:80]}"
