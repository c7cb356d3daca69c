from __future__ import annotations

import dataclasses
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest

from kbgate.tasks.domain import Mode, Outcome
from kbgate.tasks.results import Answer, Run
from kbgate.tasks.retrieval import run_of
from kbgate.tasks.runs.columns import read_run, run_table, write_parquet
from kbgate.tasks.runs.document import (
    Based,
    Basis,
    VerdictDocument,
    parts_of,
    read_document,
    verdict_document,
    verdict_schema,
)
from kbgate.tasks.runs.runfiles import digests_of, seal_of, text_of, trec_judgments, trec_run, write_run
from kbgate.tasks.tables import Hits
from tests.conftest import ROOT, runs_in
from tests.exams import Desk, filler

SCHEMA = ROOT / "reports" / "schemas" / "verdict.v1.schema.json"
WRITTEN_BEFORE = Path(__file__).parent / "verdict.v1.json"


def evaluation(desk: Desk) -> Any:
    desk.case("a b%", expected=["c0", "c5"])
    desk.case("raised")
    desk.case("none", kind="no_match")
    for n in range(20):
        desk.case(f"q{n}")
    hits = {f"q{n}": filler("c0") for n in range(20)}
    return desk.evaluation({"a b%": filler("c1", "c0"), "raised": "raised", "none": [], **hits})


def test_the_schema_is_made_from_the_model() -> None:
    made = json.dumps(verdict_schema(), indent=2) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        SCHEMA.write_text(made, encoding="utf-8")
    assert SCHEMA.read_text(encoding="utf-8") == made, "UPDATE_GOLDEN=1 rewrites the schema"
    jsonschema.Draft202012Validator.check_schema(verdict_schema())


def test_the_verdict_is_of_its_schema(desk: Desk) -> None:
    document = verdict_document(evaluation(desk)).plain()
    schema = json.loads(SCHEMA.read_text())
    of_schema = jsonschema.validators.validator_for(schema)(schema, format_checker=jsonschema.FormatChecker())
    of_schema.validate(document)
    json.dumps(document, allow_nan=False)
    wrong = [{"verdict": "GREEN"}, {"extra": 1}, {"top_k": "5"}, {"time": "now"}, {"as_of": "tomorrow"}, {"seal": "f"}]
    for changes in wrong:
        with pytest.raises(jsonschema.ValidationError):
            of_schema.validate({**document, **changes})
        with pytest.raises(ValueError, match=next(iter(changes))):
            VerdictDocument.of({**document, **changes})
    for part in set(document) - {"valid_at"}:
        with pytest.raises(jsonschema.ValidationError):
            of_schema.validate({name: value for name, value in document.items() if name != part})


def test_a_verdict_written_before_there_was_a_model_is_read_and_written_alike() -> None:
    text = WRITTEN_BEFORE.read_text(encoding="utf-8")
    jsonschema.validate(json.loads(text), json.loads(SCHEMA.read_text()), format_checker=jsonschema.FormatChecker())
    document = read_document(WRITTEN_BEFORE)
    assert text_of(document) == text
    assert document.seal == seal_of(document)


def test_every_part_of_a_verdict_says_what_it_rests_on() -> None:
    assert {*parts_of(Basis.RANKINGS), *parts_of(Basis.SEAL)} == set(VerdictDocument.model_json_schema()["properties"])
    assert not set(parts_of(Basis.RANKINGS)) & set(parts_of(Basis.SEAL))
    with pytest.raises(TypeError, match=r"Silent\.mood does not say what it rests on"):

        class Silent(Based):
            mood: str


def test_every_file_of_a_run_is_there(desk: Desk) -> None:
    done = evaluation(desk)
    document = verdict_document(done)
    write_run(done, document, "# A report\n")
    assert {file.name for file in done.folder.iterdir()} == {
        "verdict.json", "report.md", "run.parquet", "scores.parquet", "cards.parquet", "run.trec", "qrels.trec",
    }  # fmt: skip
    written = VerdictDocument.of(json.loads((done.folder / "verdict.json").read_text()))
    assert written.model_copy(update={"files": {}, "seal": ""}) == document
    assert written.files == digests_of(done.folder)
    assert written.seal == seal_of(written)
    table = pd.read_parquet(done.folder / "run.parquet")
    by_case = table.groupby("case")
    raised = by_case.get_group("raised")
    assert raised[["outcome", "detail"]].to_numpy().tolist() == [["raised", "boom"]]
    assert raised["card"].isna().all()
    assert by_case.get_group("none")["outcome"].tolist() == ["empty"]
    assert by_case.get_group("a b%").sort_values("rank")["card"].tolist()[:2] == ["c1", "c0"]
    scores = pd.read_parquet(done.folder / "scores.parquet")
    assert list(scores.columns) == ["lane", "case", "metric", "value"]
    assert scores.query("case == 'a b%' and metric == 'contract@3'")["value"].item() == 0.5


def hybrid() -> Run:
    """Two lanes that do not hold the same cards, a case that brought nothing, one that failed."""
    answer = Answer(Outcome.ANSWERED, 1.5, 4, lane_ms={"bm25": 0.5, "dense": 1.0})
    lanes = {
        "hybrid": {"b": Hits.of([("y", 0.03), ("x", 0.02)]), "a": Hits.of([("x", 0.03)])},
        "dense": {"b": Hits.of([("x", 0.9), ("y", 0.9), ("z", 0.1)])},
        "bm25": {"b": Hits.of([("w", 7.0), ("y", 3.0)]), "a": Hits.of([("x", 2.0)])},
    }
    answers = {
        "b": answer,
        "a": dataclasses.replace(answer, extended=True, predicate='{"a":1}'),
        "empty": Answer(Outcome.EMPTY, 1.0, 0),
        "failed": Answer(Outcome.RAISED, 2.0, 4, detail="boom"),
    }
    return run_of("hybrid", answers, lanes, Mode.FAST)


def test_a_run_reads_back_as_it_was_written(tmp_path: Path) -> None:
    run = hybrid()
    write_parquet(run_table(run), tmp_path / "run.parquet")
    read = read_run(tmp_path / "run.parquet", run.method, run.mode)
    assert read.answers == {case: run.answers[case] for case in sorted(run.answers)}
    assert (read.method, read.mode, read.lanes.keys()) == (run.method, run.mode, run.lanes.keys())
    for lane, rankings in run.lanes.items():
        assert read.lanes[lane].keys() == rankings.keys()
        for case, hits in rankings.items():
            assert read.of(lane, case).ids == hits.ids
            assert np.array_equal(read.of(lane, case).scores, hits.scores)


def test_a_card_that_only_a_lane_held_has_no_rank() -> None:
    table = run_table(hybrid()).select(["case", "card", "rank", "rank_bm25", "rank_dense", "score_dense"]).to_pylist()
    assert [tuple(row.values()) for row in table] == [
        ("a", "x", 1, 1, None, None),
        ("b", "y", 1, 2, 2, 0.9),
        ("b", "x", 2, None, 1, 0.9),
        ("b", "w", None, 1, None, None),
        ("b", "z", None, None, 3, 0.1),
        ("empty", None, None, None, None, None),
        ("failed", None, None, None, None, None),
    ]


def test_ranks_that_do_not_count_from_one_are_no_ranking(tmp_path: Path) -> None:
    table = run_table(hybrid())
    place = table.column_names.index("rank")
    write_parquet(table.set_column(place, "rank", [[1, 1, 3, None, None, None, None]]), tmp_path / "run.parquet")
    with pytest.raises(ValueError, match="the column rank does not count the cards of b from 1"):
        read_run(tmp_path / "run.parquet", "hybrid", Mode.FAST)


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
    assert table.select(["case", "outcome", "card"]).to_pylist() == [{"case": "a", "outcome": "empty", "card": None}]


def test_lane_ranks_stand_beside_the_methods(home: Path, kbgate: Any, medication: Path) -> None:
    assert kbgate("evaluate", medication) == 0
    newest = runs_in(home)[-1]
    table = pd.read_parquet(newest / "run.parquet")
    assert {"rank_dense", "rank_bm25", "rank_exact", "rank_reference", "predicate", "ms"} <= set(table.columns)
    top = table[table["rank"] == 1]
    assert (top[["rank_dense", "rank_bm25"]].min(axis=1) <= 3).mean() > 0.9
