"""Who may move the pointer, and what the door says to everyone else."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.conclusions import Evaluation, VerdictName
from kbgate.tasks.domain import Mode
from kbgate.tasks.errors import InputError, Overtaken, Refused, Unmeasured
from kbgate.tasks.index.store import Collection
from kbgate.tasks.outcomes import Promotion
from kbgate.tasks.production.contents import contents_of, verify
from kbgate.tasks.production.folder import FolderProduction
from kbgate.tasks.production.pointer import Pointer, Target
from kbgate.tasks.production.promotion import begin, check_verdict, promote, roll_back
from kbgate.tasks.runs.document import VerdictDocument, verdict_document
from kbgate.tasks.runs.runfiles import seal_of, sealed, text_of
from kbgate.tasks.runs.verification import read_verdict
from tests.conftest import read_lines
from tests.exams import Desk, filler
from tests.tasks.production.builds import NOW, ROWS, fill, opened

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c0")


def exam(desk: Desk, ranking: list[str] = HIT, build: int = 1, mode: Mode = Mode.FULL) -> Evaluation:
    desk.case("a")
    evaluation = desk.evaluation({"a": ranking}, mode)
    counts = evaluation.counts.model_copy(update={"rows": ROWS})
    return dataclasses.replace(evaluation, build=f"desk-{build:016x}-20260601T023000Z-abcdef", counts=counts)


@pytest.fixture
def production(tmp_path: Path) -> FolderProduction:
    return FolderProduction(tmp_path / "serving", "desk")


def promoted(production: FolderProduction, evaluation: Evaluation) -> Promotion:
    """A whole promotion but for the exam."""
    pointer = begin(production, NOW)
    fill(production, evaluation.build)
    return promote(production, evaluation, NOW, pointer)


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
        result = promoted(production, exam(desk, build=number))
        assert (result.promoted, result.exit_code) == (True, 0)
    pointer = production.read()
    assert pointer.target is not None
    assert pointer.target.build.startswith("desk-0000000000000006")
    assert [old.build[:21] for old in pointer.previous] == [f"desk-{n:016x}" for n in (5, 4, 3)]
    assert [line["action"] for line in read_lines(production.home / "audit.jsonl")] == ["promoted"] * 6


@pytest.mark.parametrize("how", ["red", "no baseline", "fast"])
def test_everything_else_leaves_production_untouched(how: str, desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    promoted(production, exam(desk))
    before = (production.home / "CURRENT").read_bytes()
    if how == "no baseline":
        for file in desk.folder.glob("baseline*"):
            file.unlink()
    evaluation = exam(desk, MISS if how == "red" else HIT, 2, Mode.FAST if how == "fast" else Mode.FULL)
    result = promoted(production, evaluation)
    assert (result.promoted, result.exit_code, result.name) == (False, 1, VerdictName.BLOCK)
    assert "production stays at desk-0000000000000001" in result.summary
    assert (production.home / "CURRENT").read_bytes() == before
    assert read_lines(production.home / "audit.jsonl")[-1]["action"] == "refused"


def test_a_rollback_returns_and_can_be_undone(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    builds = [exam(desk, build=n) for n in (1, 2, 3)]
    suite = builds[0].exam.suite
    with pytest.raises(Refused, match="no earlier target"):
        roll_back(production, suite, "", NOW)
    for evaluation in builds:
        promoted(production, evaluation)
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
        promoted(production, exam(desk, build=n))
    before = production.read()
    shutil.rmtree(production.place(before.previous[0].build))
    with pytest.raises(Refused, match="cannot be opened"):
        roll_back(production, exam(desk).exam.suite, "", NOW)
    assert production.read() == before


def builds_in(production: FolderProduction) -> list[int]:
    """The builds that lie there, by number."""
    return [int(build.split("-")[1], 16) for build in production.builds()]


def test_the_served_build_and_three_lie_there(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    for number in range(1, 7):
        promoted(production, exam(desk, build=number))
        assert builds_in(production) == list(range(max(1, number - 3), number + 1))


def test_count_and_digest_stand_in_the_pointer(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    promoted(production, exam(desk))
    target = production.read().target
    assert target is not None
    assert target.contents == contents_of(production, target.build)
    assert target.contents.rows == ROWS


def lose(collection: Collection) -> None:
    collection.delete(ids=["r1"])


def reword(collection: Collection) -> None:
    collection.update(ids=["r1"], documents=["another text"], embeddings=[[0.0, 1.0, 0.0, 0.0]])


def relabel(collection: Collection) -> None:
    collection.update(ids=["r1"], metadatas=[{"language": "de"}])


@pytest.mark.parametrize(("harm", "sentence"), [(lose, "holds 2 of 3 rows"), (reword, "not those"), (relabel, "not those")])
def test_a_damaged_build_is_not_returned_to_and_not_called_served(
    harm: Callable[[Collection], None], sentence: str, desk: Desk, production: FolderProduction
) -> None:
    accepted(desk)
    for n in (1, 2):
        promoted(production, exam(desk, build=n))
    before = production.read()
    for build in before.builds:
        with opened(production, build) as collection:
            harm(collection)
    with pytest.raises(Refused, match=sentence):
        roll_back(production, exam(desk).exam.suite, "", NOW)
    assert before.target is not None
    with pytest.raises(Refused, match=sentence):
        verify(production, before.target)
    assert production.read() == before
    cured = promoted(production, exam(desk, build=3))
    assert cured.promoted
    assert sentence in cured.summary


def test_a_candidate_that_is_short_is_not_served(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    promoted(production, exam(desk))
    before, evaluation = production.read(), exam(desk, build=2)
    fill(production, evaluation.build, ROWS - 1)
    with pytest.raises(Unmeasured, match="holds 2 of the 3 rows that were examined"):
        promote(production, evaluation, NOW, before)
    assert production.read() == before


@pytest.mark.parametrize("served_before", [True, False])
def test_a_candidate_that_vanishes_as_the_pointer_moves_is_withdrawn(
    served_before: bool, desk: Desk, production: FolderProduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted(desk)
    if served_before:
        promoted(production, exam(desk))
    before, evaluation, move = production.read(), exam(desk, build=2), production.move

    def moved_as_it_goes(pointer: Pointer) -> None:
        move(pointer)
        shutil.rmtree(production.place(evaluation.build), ignore_errors=True)

    fill(production, evaluation.build)
    monkeypatch.setattr(production, "move", moved_as_it_goes)
    with pytest.raises(Unmeasured, match="held 0 of 3 rows once the pointer named it"):
        promote(production, evaluation, NOW, before)
    assert (production.read().target, production.read().previous) == (before.target, before.previous)
    assert [line["action"] for line in read_lines(production.home / "audit.jsonl")][-2:] == ["promoted", "withdrawn"]


def test_who_was_overtaken_moves_nothing_and_leaves_nothing(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    promoted(production, exam(desk))
    old, late = production.read(), exam(desk, build=2)
    promoted(production, exam(desk, build=3))
    before = production.read()
    fill(production, late.build)
    with pytest.raises(Overtaken, match="moved the pointer on to desk-0000000000000003") as overtaken:
        promote(production, late, NOW, old)
    assert overtaken.value.exit_code == 4
    assert production.read() == before
    assert builds_in(production) == [1, 3]
    assert read_lines(production.home / "audit.jsonl")[-1]["action"] == "overtaken"


def test_a_rollback_to_a_removed_build_leaves_no_empty_store(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    for n in (1, 2):
        promoted(production, exam(desk, build=n))
    gone = Path(production.place(production.read().previous[0].build))
    shutil.rmtree(gone)
    with pytest.raises(Refused, match="it was removed"):
        roll_back(production, exam(desk).exam.suite, "", NOW)
    assert not gone.exists()
    gone.mkdir()
    with pytest.raises(Refused, match="it was removed"):
        roll_back(production, exam(desk).exam.suite, "", NOW)
    assert list(gone.iterdir()) == []


def test_without_a_pointer_what_is_found_is_kept_and_of_unknown_state(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    for n in range(1, 5):
        promoted(production, exam(desk, build=n))
    (production.home / "CURRENT").unlink()
    promoted(production, exam(desk, build=5))
    pointer = production.read()
    assert builds_in(production) == [1, 2, 3, 4, 5], "more than keep, and none of them swept"
    assert {old.build for old in pointer.previous} == {exam(desk, build=n).build for n in range(1, 5)}
    assert not any(old.known for old in pointer.previous)
    with pytest.raises(Refused, match="is unknown"):
        roll_back(production, exam(desk).exam.suite, "", NOW)

    def refused(target: Target) -> Target:
        raise Refused(f"{target.build} does not pass")

    with pytest.raises(Refused, match="does not pass"):
        roll_back(production, exam(desk).exam.suite, "", NOW, refused)
    assert production.read() == pointer


def test_what_an_exam_says_of_an_unknown_build_is_written_down(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    promoted(production, exam(desk))
    served = production.read().target
    assert served is not None
    (production.home / "CURRENT").unlink()
    promoted(production, exam(desk, build=2))

    def examined(target: Target) -> Target:
        contents = contents_of(production, target.build)
        return target.model_copy(update={"verdict": served.verdict, "contents": contents})

    assert roll_back(production, exam(desk).exam.suite, "", NOW, examined).known
    assert production.read().served == served.build


def test_a_kill_between_pointer_and_audit_is_completed_by_the_next(desk: Desk, production: FolderProduction) -> None:
    accepted(desk)
    promoted(production, exam(desk))
    trail = production.home / "audit.jsonl"
    whole = trail.read_text()
    for left in ("", whole[: len(whole) // 2]):  # killed before its line, and inside of it
        trail.write_text(left)
        begin(production, NOW)
        begin(production, NOW)
        assert trail.read_text().endswith(whole), "once, and as it would have been"
        assert trail.read_text().count('"promoted"') == 1 + left.count('"promoted"')


def test_the_lag_from_the_newest_card_is_told(desk: Desk, production: FolderProduction) -> None:
    desk.cards[3]["updated_at"] = "2026-06-01T02:59:00+00:00"
    accepted(desk)
    promoted(production, exam(desk))
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
