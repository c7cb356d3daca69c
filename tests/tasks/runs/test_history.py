from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

from kbgate.tasks.comparison.compare import compare
from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.domain import Mode
from kbgate.tasks.results import Previous
from kbgate.tasks.runs.document import VerdictDocument, verdict_document
from kbgate.tasks.runs.history import append_history, path_of, previous_run, read_history
from kbgate.tasks.schema import Mean
from kbgate.tasks.tables import Figure
from tests.exams import Desk, filler


def document(desk: Desk) -> VerdictDocument:
    desk.case("a")
    return verdict_document(desk.evaluation({"a": filler("c0")}))


def test_a_run_is_a_line_that_reads_back(desk: Desk, tmp_path: Path) -> None:
    append_history(tmp_path, "desk", document(desk))
    append_history(tmp_path, "desk", document(desk))
    lines = read_history(tmp_path, ("desk",))
    assert [line.verdict for line in lines] == [VerdictName.INCONCLUSIVE, VerdictName.INCONCLUSIVE]
    assert (lines[0].means["contract@3"].mean, lines[0].means["contract@3"].n) == (1, 1)
    assert read_history(tmp_path, ("other",)) == []


def test_a_torn_line_hides_no_other(desk: Desk, tmp_path: Path) -> None:
    written = document(desk)
    append_history(tmp_path, "desk", written)
    with path_of(tmp_path, "desk").open("a") as file:
        file.write('{"schema": 1, "sui')
    append_history(tmp_path, "desk", written)
    assert len(read_history(tmp_path, ("desk",))) == 2


def test_a_line_is_read_by_its_schema_alone(desk: Desk, tmp_path: Path) -> None:
    """Lines of the first kbgate had no `as_of`; a later one may write more into a line, and another schema is another line."""
    append_history(tmp_path, "desk", document(desk))
    line = json.loads(path_of(tmp_path, "desk").read_text())
    older = {name: value for name, value in line.items() if name != "as_of"}
    with path_of(tmp_path, "desk").open("a") as file:
        for other in (older, {**line, "weather": "fine"}, {**line, "schema": 2}, {**line, "mode": 1}, ["line"]):
            file.write(json.dumps(other) + "\n")
    assert [line.as_of is None for line in read_history(tmp_path, ("desk",))] == [False, True, False]


def _append(home: Path, written: VerdictDocument) -> None:
    for _ in range(50):
        append_history(home, "desk", written)


def test_runs_that_end_together_do_not_mix(desk: Desk, tmp_path: Path) -> None:
    written = document(desk)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append, args=(tmp_path, written)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(read_history(tmp_path, ("desk",))) == 150


def test_the_previous_run_is_of_the_same_questions_and_the_same_mode(desk: Desk, tmp_path: Path) -> None:
    assert previous_run(tmp_path, ("desk",), Mode.FULL, "f" * 16) is None
    written = document(desk)
    append_history(tmp_path, "desk", written)
    previous = previous_run(tmp_path, ("desk",), Mode.FULL, "f" * 16)
    assert previous is not None
    assert (previous.run, previous.means["contract@3"]) == (written.run, Mean(mean=1.0, n=1))
    assert previous_run(tmp_path, ("desk",), Mode.FAST, "f" * 16) is None
    assert previous_run(tmp_path, ("desk",), Mode.FULL, "e" * 16) is None


def test_figures_tell_their_change_since_the_previous_run_of_as_many_cases(desk: Desk) -> None:
    desk.case("a")
    desk.case("b")
    exam = desk.exam({"a": filler("c0"), "b": filler("c1")})
    previous = Previous("before", {"contract@3": Mean(mean=0.5, n=2), "mrr@3": Mean(mean=0.5, n=3)})
    comparison = compare(exam.suite, exam.golden, exam.asked, exam.run, exam.scores, None, (), previous)
    changes = {row.figure: row.since_previous for row in comparison.figures if not row.slice}
    assert changes[Figure("contract", 3)] == 0.5
    assert changes[Figure("mrr", 3)] is None
    assert sum(change is not None for change in changes.values()) == 1
