"""What came into the knowledge base since it was last green, and which cases that may touch."""

from __future__ import annotations

import ast
import datetime as dt
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from kbgate.tasks.domain import Arrivals, Baseline, Index, Inputs, Material, Question
from kbgate.tasks.index.fingerprint import kb_fingerprint
from kbgate.tasks.index.vectors import Vectors
from kbgate.tasks.records import canonical
from kbgate.tasks.registry import RETRIEVERS
from kbgate.tasks.results import GREEN, Judgement
from kbgate.tasks.retrieval.lanes import Eligible
from kbgate.tasks.retrieval.run import questions_of
from kbgate.tasks.runs.history import read_history

MANIFEST = "cards.parquet"
"""A run's file: id and hash of every card it saw."""


def arrivals(inputs: Inputs, home: Path, batch: str = "") -> Arrivals | None:
    """Cards that are new, changed or gone since the last green full run, or the baseline; None where there is neither."""
    now = dict(zip(inputs.kb.cards["id"], inputs.kb.cards["hash"], strict=True))
    for line in reversed(read_history(home, inputs.suite.name)):
        manifest = home / "runs" / inputs.suite.name / line["run"] / MANIFEST
        if line["verdict"] in GREEN and line["mode"] == "full" and manifest.exists():
            then = pd.read_parquet(manifest)
            return _between(f"run {line['run']}", dict(zip(then["id"], then["hash"], strict=True)), now, batch)
    return since_baseline(inputs, batch)


def since_baseline(inputs: Inputs, batch: str = "") -> Arrivals | None:
    """Cards that are new, changed or gone since the baseline; None where there is none."""
    if inputs.baseline is None:
        return None
    now = dict(zip(inputs.kb.cards["id"], inputs.kb.cards["hash"], strict=True))
    return _between("the baseline", {card: row["hash"] for card, row in inputs.baseline.cards.items()}, now, batch)


def _between(since: str, then: Mapping[str, str], now: Mapping[str, str], batch: str) -> Arrivals:
    return Arrivals(
        since,
        batch,
        new=tuple(sorted(set(now) - set(then))),
        changed=tuple(sorted(card for card in set(now) & set(then) if now[card] != then[card])),
        removed=tuple(sorted(set(then) - set(now))),
    )


def touched_cases(inputs: Inputs, material: Material, vectors: Vectors, day: dt.date) -> tuple[str, ...]:
    """Cases a change may touch.

    New or edited ones; those whose gold or baseline top k holds a changed or removed card; those for which a row of a new
    or changed card reaches the baseline's k-th score in a lane.

    `vectors`: one per case of the golden set, in its order. Without a baseline, or where a setting changed how cards become
    rankings, every case is touched.
    """
    baseline, change = inputs.baseline, since_baseline(inputs)
    if baseline is None or change is None:
        return tuple(inputs.golden.cases["id"])
    if baseline.summary["provenance"].get("settings") != material.settings:
        return tuple(inputs.golden.cases["id"])
    moved, came = {*change.changed, *change.removed}, {*change.new, *change.changed}
    golden = inputs.golden.cases
    found = set()
    for case, grades, now in zip(golden["id"], golden["grades"], golden["hash"], strict=True):
        row = baseline.cases.get(case)
        if row is None or row["hash"] != now or moved & {*grades, *row["top"]}:
            found.add(case)
    if came:
        questions = questions_of(inputs.golden.cases, vectors, day)
        found |= _reached(inputs, material, questions, vectors, came, baseline)
    return tuple(sorted(found))


def _reached(
    inputs: Inputs, material: Material, questions: list[Question], vectors: Vectors, came: set[str], baseline: Baseline
) -> set[str]:
    """Cases for which a row of one of the cards scores at least as high as the baseline's k-th in some lane."""
    of_came = set(material.members.loc[material.members["card"].isin(came), "row"])
    mask = material.rows["id"].isin(of_came).to_numpy()
    index = Index(material.rows, material.members, material.vectors, "", "")
    eligible, ids = Eligible(index), inputs.golden.cases["id"].tolist()
    lanes = RETRIEVERS[inputs.suite.retrieval.method].lanes or (inputs.suite.retrieval.method,)
    cosine = vectors @ material.vectors[mask].T
    words = RETRIEVERS["bm25"].connect(index, inputs.suite)(questions, inputs.suite.cuts[-1])
    found = set()
    for place, (case, question) in enumerate(zip(ids, questions, strict=True)):
        kth: Mapping[str, float] = (baseline.cases.get(case) or {}).get("kth", {})
        may = eligible.rows(question.where or {})[mask]
        best = {"bm25": max((score for card, score in words[place].lanes.get("bm25", ()) if card in came), default=0.0)}
        best["dense"] = best["exact"] = float(np.max(cosine[place][may], initial=-1.0))
        # A lane the baseline did not have has no k-th score: then whatever is found there touches the case.
        if any(best[lane] >= kth.get(lane, -1.0) - _ROUNDING and best[lane] != _NOTHING[lane] for lane in lanes):
            found.add(case)
    return found


_ROUNDING = 1e-6
_NOTHING = {"bm25": 0.0, "dense": -1.0, "exact": -1.0}
"""What a lane's best score is where it found no row of the cards that came."""


def already_judged(inputs: Inputs, fingerprints: Mapping[str, str], day: dt.date, home: Path) -> Judgement | None:
    """The last full run's verdict, where it judged exactly this on this day; None where anything differs."""
    lines = [line for line in read_history(home, inputs.suite.name) if line["mode"] == "full"]
    # A bad line in the knowledge base is in no fingerprint.
    if not lines or lines[-1]["verdict"] == "ERROR" or inputs.kb.problems:
        return None
    last, kb = lines[-1], kb_fingerprint(inputs.kb.cards)
    if (
        not set(inputs.announced) <= set(inputs.kb.cards["id"])
        or last["kb"] != kb
        or last.get("as_of") != day.isoformat()
        or canonical(last["fingerprints"]) != canonical(dict(fingerprints))
    ):
        return None
    return Judgement(last["run"], last["verdict"], last["exit_code"])


def announced_ids(told: object) -> tuple[str, ...]:
    """The card ids an event told: a list, a list written as text, text apart by commas, or nothing."""
    if isinstance(told, str) and told.strip().startswith("["):
        try:
            told = ast.literal_eval(told.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            told = str(told).strip(" []")
    if told is None or told in ("None", "null"):
        return ()
    parts = told if isinstance(told, list | tuple) else str(told).split(",")
    return tuple(name for name in (str(part).strip() for part in parts) if name)
