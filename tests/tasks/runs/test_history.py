from __future__ import annotations

import multiprocessing
from pathlib import Path

from kbgate.tasks.comparison.compare import compare
from kbgate.tasks.domain import Previous
from kbgate.tasks.runs.history import append_history, path_of, previous_run, read_history
from kbgate.tasks.runs.runfiles import verdict_document
from tests.exams import Desk, filler


def document(desk: Desk) -> dict[str, object]:
    desk.case("a")
    return verdict_document(desk.evaluation({"a": filler("c0")}))


def test_a_run_is_a_line_that_reads_back(desk: Desk, tmp_path: Path) -> None:
    append_history(tmp_path, document(desk))
    append_history(tmp_path, document(desk))
    lines = read_history(tmp_path, "desk")
    assert [line["verdict"] for line in lines] == ["INCONCLUSIVE", "INCONCLUSIVE"]
    assert lines[0]["means"]["contract@3"] == {"mean": 1.0, "n": 1}
    assert read_history(tmp_path, "other") == []


def test_a_torn_line_hides_no_other(desk: Desk, tmp_path: Path) -> None:
    told = document(desk)
    append_history(tmp_path, told)
    with path_of(tmp_path, "desk").open("a") as file:
        file.write('{"schema": 1, "sui')
    append_history(tmp_path, told)
    assert len(read_history(tmp_path, "desk")) == 2


def _append(home: Path, told: dict[str, object]) -> None:
    for _ in range(50):
        append_history(home, told)


def test_runs_that_end_together_do_not_mix(desk: Desk, tmp_path: Path) -> None:
    told = document(desk)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append, args=(tmp_path, told)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(read_history(tmp_path, "desk")) == 150


def test_the_previous_run_is_of_the_same_questions_and_the_same_mode(desk: Desk, tmp_path: Path) -> None:
    assert previous_run(tmp_path, "desk", "full", "f" * 16) is None
    told = document(desk)
    append_history(tmp_path, told)
    found = previous_run(tmp_path, "desk", "full", "f" * 16)
    assert found is not None
    assert (found.run, found.means["contract@3"]) == (told["run"], {"mean": 1.0, "n": 1})
    assert previous_run(tmp_path, "desk", "fast", "f" * 16) is None
    assert previous_run(tmp_path, "desk", "full", "e" * 16) is None


def test_figures_tell_their_change_since_the_previous_run_of_as_many_cases(desk: Desk) -> None:
    desk.case("a")
    desk.case("b")
    exam = desk.exam({"a": filler("c0"), "b": filler("c1")})
    previous = Previous("before", {"contract@3": {"mean": 0.5, "n": 2}, "mrr@3": {"mean": 0.5, "n": 3}})
    told = compare(exam.suite, exam.golden, exam.asked, exam.run, exam.scores, None, (), previous).figures
    whole = told[told["slice"] == ""].set_index("metric")["since_previous"]
    assert whole["contract@3"] == 0.5
    assert whole.isna()["mrr@3"]
    assert whole.notna().sum() == 1
