from __future__ import annotations

import multiprocessing
from pathlib import Path

from tasks.history import append_history, path_of, read_history
from tasks.runfiles import verdict_document
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
