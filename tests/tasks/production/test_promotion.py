"""Who may move the pointer, and what the door says to everyone else."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbgate.tasks.conclusions import Evaluation, VerdictName
from kbgate.tasks.domain import Mode
from kbgate.tasks.errors import InputError, Refused
from kbgate.tasks.index.store import no_embedder, open_store
from kbgate.tasks.production.folder import FolderProduction
from kbgate.tasks.production.places import candidate
from kbgate.tasks.production.promotion import check_verdict, promote, roll_back
from kbgate.tasks.runs.document import VerdictDocument, verdict_document
from kbgate.tasks.runs.runfiles import seal_of, sealed, text_of
from kbgate.tasks.runs.verification import read_verdict
from tests.conftest import read_lines
from tests.exams import Desk, filler

NOW = dt.datetime(2026, 6, 1, 3, 0, tzinfo=dt.UTC)
HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c0")


def exam(desk: Desk, ranking: list[str] = HIT, build: int = 1, mode: Mode = Mode.FULL) -> Evaluation:
    desk.case("a")
    evaluation = desk.evaluation({"a": ranking}, mode)
    return dataclasses.replace(evaluation, build=f"desk-{build:016x}-20260601T023000Z-abcdef")


@pytest.fixture
def production(tmp_path: Path) -> FolderProduction:
    return FolderProduction(tmp_path / "serving", "desk")


def built(production: FolderProduction, evaluation: Evaluation) -> Evaluation:
    with candidate(production, evaluation.build) as place:
        collection = open_store(place).create_collection(evaluation.build, embedding_function=no_embedder())
        collection.add(ids=["a"], embeddings=np.eye(1, 4, dtype=np.float32))
    return evaluation


def written(evaluation: Evaluation) -> dict[str, Any]:
    """The content of a run's verdict.json."""
    return sealed(verdict_document(evaluation), {}).plain()


def resealed(content: dict[str, Any]) -> str:
    """What who edits a verdict, and its seal too, can make of it."""
    document = VerdictDocument.of(content)
    return text_of(document.model_copy(update={"seal": seal_of(document)}))


def test_a_new_verdict_is_read_as_it_was_written(desk: Desk, tmp_path: Path) -> None:
    document = sealed(verdict_document(exam(accepted(desk))), {"report.md": "0" * 64})
    (tmp_path / "verdict.json").write_text(text_of(document))
    assert read_verdict(tmp_path) == document


def test_a_verdict_whose_seal_does_not_fit_opens_no_door(desk: Desk, tmp_path: Path) -> None:
    evaluation = exam(accepted(desk))
    document = written(evaluation)
    (tmp_path / "verdict.json").write_text(json.dumps({**document, "seal": "0" * 64}))
    with pytest.raises(Refused, match="its seal does not fit"):
        check_verdict(tmp_path / "verdict.json", evaluation.exam.suite, evaluation.fingerprints, NOW)


def accepted(desk: Desk) -> Desk:
    desk.case("a")
    desk.accept({"a": HIT})
    return desk


def test_a_passing_exam_is_served_and_the_last_ones_are_kept(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    for number in range(1, 7):
        result = promote(production, built(production, exam(desk, build=number)), NOW)
        assert (result.promoted, result.exit_code) == (True, 0)
    pointer = production.read()
    assert pointer.target is not None
    assert pointer.target.build.startswith("desk-0000000000000006")
    assert [old.build[:21] for old in pointer.previous] == [f"desk-{n:016x}" for n in (5, 4, 3)]
    assert [line["action"] for line in read_lines(production.home / "audit.jsonl")] == ["promoted"] * 6


@pytest.mark.parametrize("how", ["red", "no baseline", "fast"])
def test_everything_else_leaves_production_untouched(how: str, desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    promote(production, built(production, exam(desk)), NOW)
    before = (production.home / "CURRENT").read_bytes()
    if how == "no baseline":
        for file in desk.folder.glob("baseline*"):
            file.unlink()
    evaluation = exam(desk, MISS if how == "red" else HIT, 2, Mode.FAST if how == "fast" else Mode.FULL)
    result = promote(production, evaluation, NOW)
    assert (result.promoted, result.exit_code, result.name) == (False, 1, VerdictName.BLOCK)
    assert "production stays at desk-0000000000000001" in result.summary
    assert (production.home / "CURRENT").read_bytes() == before
    assert read_lines(production.home / "audit.jsonl")[-1]["action"] == "refused"


def test_a_rollback_returns_and_can_be_undone(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    builds = [built(production, exam(desk, build=n)) for n in (1, 2, 3)]
    suite = builds[0].exam.suite
    with pytest.raises(Refused, match="no earlier target"):
        roll_back(production, suite, "", NOW)
    for evaluation in builds:
        promote(production, evaluation, NOW)
    assert roll_back(production, suite, "", NOW).build == builds[1].build
    assert roll_back(production, suite, "", NOW).build == builds[0].build, "further back, not to what was just left"
    assert roll_back(production, suite, builds[2].build, NOW).build == builds[2].build
    pointer = production.read()
    assert {old.build for old in pointer.previous} == {builds[0].build, builds[1].build}
    with pytest.raises(Refused, match="is no kept target; did you mean"):
        roll_back(production, suite, builds[1].build[:-1] + "0", NOW)


def test_a_target_that_is_gone_is_not_returned_to(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    for n in (1, 2):
        promote(production, built(production, exam(desk, build=n)), NOW)
    before = production.read()
    production.discard(before.previous[0].build)
    with pytest.raises(Refused, match="cannot be opened"):
        roll_back(production, exam(desk).exam.suite, "", NOW)
    assert production.read() == before


def test_the_lag_from_the_newest_card_is_told(desk: Desk, production: FolderProduction) -> None:
    desk.cards[3]["updated_at"] = "2026-06-01T02:59:00+00:00"
    accepted(desk)
    promote(production, built(production, exam(desk)), NOW)
    assert read_lines(production.home / "audit.jsonl")[-1]["lag_s"] == 60.0


def spoiled(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda document: {**document, **changes}


REASON = {"check": "finite", "level": "critical", "sentence": "bad", "cases": [], "code": ""}


def other(part: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda document: {**document, "fingerprints": {**document["fingerprints"], part: "0" * 16}}


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (spoiled(verdict="BLOCK", exit_code=1), "the verdict is BLOCK"),
        (spoiled(verdict="PASS", exit_code=1), "the verdict is PASS"),
        (spoiled(provisional=True), "it is provisional"),
        (spoiled(outcomes={"timeout": 289}), "questions failed"),
        (spoiled(mode="fast"), "only the full set opens the door"),
        (spoiled(suite="other"), "it is of suite 'other'"),
        (spoiled(time="2026-05-30T02:30:00+00:00"), "24h is allowed"),
        (spoiled(time="2026-06-01T04:30:00+00:00"), "which is not yet"),
        (spoiled(reasons=[REASON]), "lists what no green verdict has"),
        *((other(part), f"its {part} is 0000000000000000") for part in ("index", "golden", "policy", "baseline")),
    ],
)
def test_the_door_for_other_peoples_tools(
    spoil: Callable[..., dict[str, Any]], sentence: str, desk: Desk, tmp_path: Path
) -> None:
    evaluation = exam(accepted(desk))
    content = written(evaluation)
    file, suite, current = tmp_path / "verdict.json", evaluation.exam.suite, evaluation.fingerprints
    file.write_text(resealed(content))
    assert check_verdict(file, suite, current, NOW).verdict == VerdictName.PASS
    file.write_text(resealed(spoil(content)))
    with pytest.raises(Refused, match=sentence):
        check_verdict(file, suite, current, NOW)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"valid_at": "2026-01-01T00:00:00+00:00"},
            "validity was judged on 2026-01-01, not on 2026-06-01",
        ),
        (
            {"valid_at": "2026-06-02T00:00:00+00:00"},
            "validity was judged on 2026-06-02, not on 2026-06-01",
        ),
        ({"valid_at": None}, "it does not say when cards had to be valid"),
    ],
)
def test_validity_judged_at_another_time_opens_no_door_whatever_the_suite_pins(
    changes: dict[str, Any], sentence: str, desk: Desk, tmp_path: Path
) -> None:
    evaluation = exam(accepted(desk))
    (tmp_path / "verdict.json").write_text(resealed({**written(evaluation), **changes}))
    for as_of in ("today", dt.date(2026, 1, 1), dt.date(2026, 6, 1)):
        suite = evaluation.exam.suite.model_copy(update={"as_of": as_of})
        with pytest.raises(Refused, match=f"{sentence}; next: kbgate evaluate .*/desk --now"):
            check_verdict(tmp_path / "verdict.json", suite, evaluation.fingerprints, NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"schema": 1, "verdict": "PASS"}',
        "7",
        '{"schema": 1, "schema": 1}',
        '{"schema": "1"}',
        '{"schema": NaN}',
    ],
)
def test_a_file_that_is_no_verdict_is_bad_input(text: str, desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text(text)
    evaluation = exam(accepted(desk))
    with pytest.raises(InputError, match=r"is no verdict kbgate wrote \(.*\); name the verdict.json of a run") as refused:
        check_verdict(tmp_path / "verdict.json", evaluation.exam.suite, evaluation.fingerprints, NOW)
    assert len(str(refused.value).splitlines()) == 1
    with pytest.raises(InputError, match="is no verdict kbgate wrote"):
        read_verdict(tmp_path)


def test_a_verdict_of_a_newer_kbgate_says_what_to_do(desk: Desk, tmp_path: Path) -> None:
    evaluation = exam(accepted(desk))
    (tmp_path / "verdict.json").write_text(json.dumps({**written(evaluation), "schema": 2}))
    with pytest.raises(InputError, match="its schema is 2, this kbgate reads 1\\); upgrade kbgate"):
        read_verdict(tmp_path)


@pytest.mark.parametrize("key", list(VerdictDocument.model_json_schema()["required"]))
def test_a_verdict_that_lacks_a_part_is_bad_input(key: str, desk: Desk, tmp_path: Path) -> None:
    evaluation = exam(accepted(desk))
    content = written(evaluation)
    del content[key]
    (tmp_path / "verdict.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="is no verdict kbgate wrote"):
        check_verdict(tmp_path / "verdict.json", evaluation.exam.suite, evaluation.fingerprints, NOW)


@pytest.mark.parametrize("changes", [{"exit_code": False}, {"provisional": 0}, {"verdict": "pass"}, {"time": "2026-06-01"}])
def test_a_part_of_another_type_is_bad_input(changes: dict[str, Any], desk: Desk, tmp_path: Path) -> None:
    evaluation = exam(accepted(desk))
    (tmp_path / "verdict.json").write_text(json.dumps({**written(evaluation), **changes}))
    with pytest.raises(InputError, match=f"is no verdict kbgate wrote .{next(iter(changes))}: "):
        check_verdict(tmp_path / "verdict.json", evaluation.exam.suite, evaluation.fingerprints, NOW)
