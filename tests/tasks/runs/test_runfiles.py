from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest

from kbgate.reports.render import render_markdown
from kbgate.tasks.runs.runfiles import digests_of, run_table, seal_of, trec_judgments, trec_run, verdict_document, write_run
from tests.conftest import ROOT
from tests.exams import Desk, filler

SCHEMA = json.loads((ROOT / "reports" / "schemas" / "verdict.v1.schema.json").read_text())


def evaluation(desk: Desk) -> Any:
    desk.case("a b%", expected=["c0", "c5"])
    desk.case("raised")
    desk.case("none", kind="no_match")
    for n in range(20):
        desk.case(f"q{n}")
    hits = {f"q{n}": filler("c0") for n in range(20)}
    return desk.evaluation({"a b%": filler("c1", "c0"), "raised": "raised", "none": [], **hits})


def test_the_verdict_is_of_its_schema(desk: Desk) -> None:
    document = verdict_document(evaluation(desk))
    document |= {"files": {}, "seal": "0" * 64}
    jsonschema.validate(document, SCHEMA, format_checker=jsonschema.FormatChecker())
    json.dumps(document, allow_nan=False)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "verdict": "GREEN"}, SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "extra": 1}, SCHEMA)


def test_every_file_of_a_run_is_there(desk: Desk) -> None:
    done = evaluation(desk)
    document = verdict_document(done)
    write_run(done, document, render_markdown(done, document))
    assert {file.name for file in done.folder.iterdir()} == {
        "verdict.json", "report.md", "run.parquet", "scores.parquet", "cards.parquet", "run.trec", "qrels.trec",
    }  # fmt: skip
    written = json.loads((done.folder / "verdict.json").read_text())
    assert {name: value for name, value in written.items() if name not in ("files", "seal")} == document
    assert written["files"] == digests_of(done.folder)
    assert written["seal"] == seal_of(written)
    table = pd.read_parquet(done.folder / "run.parquet")
    by_case = table.groupby("case")
    raised = by_case.get_group("raised")
    assert raised[["outcome", "detail"]].to_numpy().tolist() == [["raised", "boom"]]
    assert raised["card"].isna().all()
    assert by_case.get_group("none")["outcome"].tolist() == ["empty"]
    assert by_case.get_group("a b%").sort_values("rank")["card"].tolist()[:2] == ["c1", "c0"]
    scores = pd.read_parquet(done.folder / "scores.parquet")
    assert scores.query("case == 'a b%' and metric == 'contract@3'")["value"].item() == 0.5


def test_trec_files_have_no_white_space_inside_ids_and_falling_scores(desk: Desk) -> None:
    exam = evaluation(desk).exam
    lines = [line.split() for line in trec_run(exam.run).splitlines() if line.startswith("a")]
    assert lines[0][0] == "a%20b%25"
    scores = [float(line[4]) for line in lines]
    assert all(a > b for a, b in pairwise(scores))
    judgments = trec_judgments(exam.scores.placements).splitlines()
    assert "a%20b%25 0 c5 1" in judgments


def test_a_run_that_brought_nothing_is_still_a_table(desk: Desk) -> None:
    desk.case("a")
    table = run_table(desk.evaluation({"a": []}).exam.run)
    assert table[["case", "outcome"]].to_numpy().tolist() == [["a", "empty"]]


def test_lane_ranks_stand_beside_the_methods(home: Path, kbgate: Any, medication: Path) -> None:
    assert kbgate("evaluate", medication) == 0
    newest = max((home / "runs" / "medication").iterdir(), key=lambda folder: folder.stat().st_mtime_ns)
    table = pd.read_parquet(newest / "run.parquet")
    assert {"rank_dense", "rank_bm25", "rank_exact", "rank_reference", "predicate", "ms"} <= set(table.columns)
    top = table[table["rank"] == 1]
    assert (top[["rank_dense", "rank_bm25"]].min(axis=1) <= 3).mean() > 0.9
