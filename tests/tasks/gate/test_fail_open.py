"""Ways in which a gate could stay green by accident, each with the verdict and exit code it must end with instead."""

from __future__ import annotations

import dataclasses
import datetime as dt
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbgate.tasks.baseline.files import read_baseline, write_baseline
from kbgate.tasks.baseline.single_rows import accept_rows
from kbgate.tasks.comparison.compare import exam_of
from kbgate.tasks.conclusions import Evaluation, Exam, Verdict
from kbgate.tasks.domain import GoldenSet, Index, Inputs, Material, Mode, Outcome, Question, Ranked
from kbgate.tasks.errors import InputError, KbgateError, Refused, Unmeasured
from kbgate.tasks.findings import Diagnosis, Finding
from kbgate.tasks.gate.verdict import judge
from kbgate.tasks.index.chunking import chunk
from kbgate.tasks.index.confirmation import begun, confirm
from kbgate.tasks.index.embedding import embed_queries, embed_rows
from kbgate.tasks.index.models import identify_model
from kbgate.tasks.index.store import build_rows, ingest, temporary_store
from kbgate.tasks.metrics import METRICS, figure_at
from kbgate.tasks.production import resolve
from kbgate.tasks.production.folder import FolderProduction
from kbgate.tasks.production.pointer import Pointer
from kbgate.tasks.production.promotion import begin, check_verdict, promote, roll_back
from kbgate.tasks.retrieval import RETRIEVERS, Retriever, ScoreKind, Search
from kbgate.tasks.retrieval.run import retrieve
from kbgate.tasks.runs.document import verdict_document
from kbgate.tasks.runs.runfiles import seal_of, sealed, text_of
from kbgate.tasks.schema import Merged
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Figure, Hits
from tests.conftest import edit_text, read_lines, write_lines
from tests.exams import Desk, filler
from tests.tasks.production.builds import ROWS, build, fill, opened
from tests.tasks.production.promoter import evaluation_of

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c5", "c0")
COUNT = 240
Answers = dict[str, Any]


GIVEN: Answers = {f"q{n:03d}": HIT for n in range(COUNT)} | {"q001": filler("c0", "c9")}


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """240 cases, all passing, accepted once; the first is a canary, the second has a tier-gold answer."""
    desk = Desk(tmp_path_factory.mktemp("accepted"))
    desk.cards[9]["tier"] = "gold"
    for n in range(COUNT):
        desk.case(f"q{n:03d}", canary=n == 0, **({"expected": ["c0", "c9"]} if n == 1 else {}))
    desk.accept(GIVEN)
    return desk


@pytest.fixture
def desk(accepted: Desk, tmp_path: Path) -> Desk:
    """A copy of that desk."""
    return accepted.copy(tmp_path / "desk")


@pytest.fixture
def answers(desk: Desk) -> Answers:
    """What was accepted."""
    return dict(GIVEN)


def some(answers: Answers, count: int, outcome: Any) -> Answers:
    return {case: outcome if n < count else given for n, (case, given) in enumerate(answers.items())}


def edited(desk: Desk, *cases: str) -> None:
    for case in cases:
        row = next(row for row in desk.cases if row["id"] == case)
        desk.case(case, query="another question?", **{k: v for k, v in row.items() if k not in ("id", "query")})


def without(desk: Desk, answers: Answers, *cases: str) -> Answers:
    desk.cases = [row for row in desk.cases if row["id"] not in cases]
    return {case: given for case, given in answers.items() if case not in cases}


def spoil_exam(desk: Desk, answers: Answers, value: float) -> Verdict:
    """One figure of one case is no number."""
    exam = desk.exam(answers)
    table = exam.scores.of("exact")
    values = table.values.copy()
    values[tuple(np.argwhere(table.defined)[0])] = value
    lanes = {**exam.scores.lanes, "exact": dataclasses.replace(table, values=values)}
    return judge(dataclasses.replace(exam, scores=dataclasses.replace(exam.scores, lanes=lanes)))


def inputs_of(exam: Exam, suite: Suite) -> Inputs:
    """The inputs an exam was made from, with other settings."""
    return Inputs(suite, exam.kb, GoldenSet(exam.golden), exam.baseline, exam.vanished)


def baseline_without_a_case(desk: Desk, answers: Answers) -> Verdict:
    rows = read_lines(desk.folder / "baseline.cases.jsonl")
    write_lines(desk.folder / "baseline.cases.jsonl", rows[1:])
    return desk.judge(answers)


def baseline_with(desk: Desk, answers: Answers, old: str, new: str) -> Verdict:
    edit_text(desk.folder / "baseline.json", old, new)
    return desk.judge(answers)


def gates(desk: Desk, answers: Answers, text: str) -> Verdict:
    desk.gates = text
    return desk.judge(answers)


def open_wide(desk: Desk, answers: Answers, gate: str) -> Verdict:
    """Nearly all cases fall, and every line lets them."""
    desk.gates = (
        "newly_failing = {ceiling = 1.0, slack = 100, slips = 1000}\ncontract = {tolerance = 1.0}\nrecall = {floor = 0.0}\n"
        "hit = {floor = 0.0}\nunbaselined_failing = {ceiling = 1.0}\nfidelity = {floor = 0.95}\n"
    ) + gate
    return desk.judge(some(answers, 220, MISS) | {"q000": HIT, "q001": filler("c0", "c9")})


def two_clusters(desk: Desk, answers: Answers) -> Verdict:
    """Nothing is ever significant of two clusters: the gate's line could only ever say that it does not know."""
    desk.cases = [{**row, "cluster": "a" if n % 2 else "b"} for n, row in enumerate(desk.cases)]
    accept_anew(desk, answers)
    desk.gates = FREE + 'contract = {tolerance = 0.9, rule = "significant"}'
    return desk.judge(answers)


def only_no_match(desk: Desk, answers: Answers) -> Verdict:
    desk.cases = []
    desk.case("m", kind="no_match")
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    return desk.judge({"m": []})


def nothing_asked(desk: Desk, answers: Answers) -> Verdict:
    desk.cases = []
    return desk.judge({})


def allowed(desk: Desk, answers: Answers, until: dt.date, case: str = "q005") -> Verdict:
    desk.settings += f'[[allow]]\ncase = "{case}"\ncheck = "newly_failing"\nreason = "meant"\nuntil = {until.isoformat()}\n'
    return desk.judge({**answers, "q005": MISS})


def edit_the_failing(desk: Desk, answers: Answers) -> Verdict:
    edited(desk, "q005")
    return desk.judge({**answers, "q005": MISS})


def edit(desk: Desk, answers: Answers, *cases: str) -> Verdict:
    edited(desk, *cases)
    return desk.judge(answers)


def remove(desk: Desk, answers: Answers, case: str) -> Verdict:
    return desk.judge(without(desk, answers, case))


def gold_gone(desk: Desk, answers: Answers) -> Verdict:
    desk.cards = [card for card in desk.cards if card["id"] != "c9"]
    return desk.judge({case: [c for c in given if c != "c9"] for case, given in answers.items()})


def texts(desk: Desk, answers: Answers, before: str, after: str) -> Verdict:
    """The text of the one gold is another, and it still stands first."""
    desk.cards[0] |= {"title": "Leave", "text": before}
    accept_anew(desk, answers)
    desk.cards[0]["text"] = after
    return desk.judge(answers)


def first_run_without_text(desk: Desk, answers: Answers) -> Verdict:
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    desk.cards[0] |= {"title": "Leave", "text": ""}
    return desk.judge(answers)


def emptied_and_accepted(desk: Desk, answers: Answers) -> Verdict:
    desk.cards[0] |= {"title": "Leave", "text": ""}
    desk.accept(answers, accept_regression=True, anchor=True)
    return desk.judge(answers)


def ruled(desk: Desk, answers: Answers, key: str, rule: Any, first: bool = False, **labels: Any) -> Verdict:
    """A case with a rule on metadata, accepted with it unless it is the first run; every card has these labels."""
    desk.settings += '[kb]\nfilterable = ["audience"]\n'
    for card in desk.cards:
        card["metadata"] = {"audience": "hr"}
    desk.case("q005", **{key: rule})
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    if not first:
        desk.accept(answers)
    for card in desk.cards:
        card["metadata"] = labels
    return desk.judge(answers)


def outsider(desk: Desk, answers: Answers) -> Verdict:
    """His case leaves every mean."""
    desk.case("q005", entitled={"tier": "gold"})
    given = {**answers, "q005": ["c9"]}
    accept_anew(desk, given)
    return desk.judge(given)


def rejected_card(desk: Desk, answers: Answers, bad: Answers | None = None, share: float = 0.0) -> Verdict:
    desk.settings += f'[kb]\non_bad_card = "reject"\nrejected_share = {share}\n'
    desk.cards.append(bad or {"id": "bad"})
    return desk.judge(answers)


def half_a_table(desk: Desk, answers: Answers) -> Verdict:
    rows = [f"{card['id']},{card['text']}" for card in desk.cards]
    (desk.folder / "cards.csv").write_text("\n".join(["id,text", *rows, '"bad,never closed', "lost,lost", "too,too"]))
    desk.settings += '[kb]\npath = "cards.csv"\non_bad_card = "reject"\nrejected_share = 0.5\n'
    return desk.judge(answers)


def new_and_failing(desk: Desk, answers: Answers, **fields: Any) -> Verdict:
    desk.case("new", **fields)
    return desk.judge({**answers, "new": MISS})


def one_case(desk: Desk, answers: Answers) -> Verdict:
    desk.cases = []
    desk.case("only")
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    desk.accept({"only": HIT})
    desk.gates = FREE + 'contract = {tolerance = 0.02, rule = "significant"}'
    return desk.judge({"only": HIT})


def accept_anew(desk: Desk, answers: Answers) -> None:
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    desk.accept(answers)


def in_topic(desk: Desk, case: str, topic: str) -> None:
    desk.cases = [{**row, "topic": topic} if row["id"] == case else row for row in desk.cases]


def sliced(desk: Desk, answers: Answers, min_n: int = 1) -> None:
    """Forty cases of a small topic and two hundred of another, accepted so, each held to its own tolerance."""
    for n in range(COUNT):
        in_topic(desk, f"q{n:03d}", "a" if n < 40 else "b")
    accept_anew(desk, answers)
    desk.settings += f'[[slice]]\nby = "topic"\nmetric = "contract"\ntolerance = 0.01\nlevel = "critical"\nmin_n = {min_n}\n'
    desk.gates = "newly_failing = {ceiling = 1.0}\ncontract = {tolerance = 0.5}"


def slice_fell(desk: Desk, answers: Answers, min_n: int) -> Verdict:
    sliced(desk, answers, min_n)
    return desk.judge({**answers, "q005": MISS})


def moved_to_a_larger_topic(desk: Desk, answers: Answers) -> Verdict:
    """The failing case is relabelled: among two hundred others it would be inside their tolerance."""
    sliced(desk, answers)
    in_topic(desk, "q005", "b")
    return desk.judge({**answers, "q005": MISS})


def one_cluster(desk: Desk, answers: Answers) -> Verdict:
    """All cases put into one cluster: resampled as one, no drop of theirs could be significant."""
    desk.gates = FREE + 'contract = {tolerance = 0.04, rule = "significant"}'
    desk.cases = [{**row, "cluster": "all"} for row in desk.cases]
    return desk.judge(some(answers, 40, MISS) | {"q000": HIT})


def slice_removed(desk: Desk, answers: Answers) -> Verdict:
    """Every case of a small topic taken out, well inside the ten percent."""
    for n in range(COUNT):
        in_topic(desk, f"q{n:03d}", "a" if 200 <= n < 220 else "b" if n < 200 else "c")
    accept_anew(desk, answers)
    desk.settings += '[[slice]]\nby = "topic"\nmetric = "contract"\ntolerance = 0.01\nlevel = "critical"\n'
    return desk.judge(without(desk, answers, *(f"q{n:03d}" for n in range(200, 220))))


def excerpt_edited(desk: Desk, answers: Answers, tier: str) -> Verdict:
    """The excerpt is lost from its card, and the label is made to ask for what still stands there."""
    desk.cards[8] |= {"text": "one tablet, with water", "tier": tier}
    desk.case("q005", expected=[], evidence=[{"card": "c8", "text": "with water"}])
    answers = {**answers, "q005": filler("c8")}
    accept_anew(desk, answers)
    desk.cards[8]["text"] = "one tablet"
    desk.case("q005", expected=[], evidence=[{"card": "c8", "text": "one tablet"}])
    return desk.judge(answers)


def row_accepted(desk: Desk, answers: Answers, *cases: str) -> Verdict:
    """Two cases fail, and rows are accepted one by one."""
    worse = {**answers, "q005": MISS, "q006": MISS}
    for case in cases:
        accept_rows(desk.evaluation(worse), [case], "a reason")
    return desk.judge(worse)


def rows_accepted_one_by_one(desk: Desk, answers: Answers) -> Verdict:
    worse = some(answers, 12, MISS)
    for case in list(worse)[2:12]:
        accept_rows(desk.evaluation(worse), [case], "a reason")
    return desk.judge(worse)


def another_suites_baseline(desk: Desk, answers: Answers) -> Verdict:
    read_baseline(desk.exam(answers).suite.model_copy(update={"name": "other"}))
    return desk.judge(answers)


def slice_edited(desk: Desk, answers: Answers) -> Verdict:
    """All cases of a small language edited, well inside the ten percent: its slice was compared with nothing."""
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    small = [f"q{n:03d}" for n in range(200, 220)]
    for case in small:
        desk.case(case, language="pt")
    desk.accept(answers)
    desk.settings += '[[slice]]\nby = "language"\nmetric = "contract"\ntolerance = 0.01\nlevel = "critical"\n'
    for case in small:
        desk.case(case, language="pt", query="another question?")
    return desk.judge(answers)


def acceptance(desk: Desk, answers: Answers, text: str, failing: int) -> Verdict:
    desk.settings += f"[acceptance]\n{text}\n"
    desk.gates = "newly_failing = {ceiling = 1.0}\ncontract = {tolerance = 1.0}"
    return desk.judge(some(answers, failing + 2, MISS) | {"q000": HIT, "q001": filler("c0", "c9")})


def explained(desk: Desk, answers: Answers, count: int, trouble: str = "") -> Verdict:
    """Ten failing cases, well inside the share that may, and causes of so many of them; none where the diagnosis broke."""
    desk.settings += "[acceptance]\n"
    desk.gates = "newly_failing = {ceiling = 1.0}\ncontract = {tolerance = 1.0}"
    exam = desk.exam(some(answers, 12, MISS) | {case: answers[case] for case in ("q000", "q001")})
    findings = tuple(Finding(f"q{n:03d}", "c0", "removed", "gone", True) for n in range(2, 2 + count))
    causes = Diagnosis(() if trouble else findings, trouble=trouble).causes
    return judge(dataclasses.replace(exam, causes=causes))


def noise_that_a_mean_hides(desk: Desk, answers: Answers) -> Verdict:
    """Half of the questions at 0.667, half at 0: the mean is 0.333."""
    last = filler("c1", "c2", "c0")
    halves = {case: given if case == "q001" or n % 2 else last for n, (case, given) in enumerate(answers.items())}
    calibrated = 'noise = 0.4\ncalibrated = {run = "r", date = 2026-05-01}'
    desk.settings += f"[acceptance]\n{calibrated}\n"
    desk.gates = "newly_failing = {ceiling = 1.0}\ncontract = {tolerance = 1.0}"
    return desk.judge(halves)


def searched(desk: Desk, answers: Answers, fault: str, cases: int) -> Verdict:
    """The exam of a retriever that spoils what it answers to the first cases, checked as every retriever's answers are."""
    exam = desk.exam(answers)
    rows = build_rows(exam.suite, exam.kb, chunk(exam.suite, exam.kb))
    index, order = Index(rows, np.zeros((len(rows), 2), np.float32)), list(exam.golden)

    def connect(index: Index, suite: Suite) -> Search:
        def search(questions: Sequence[Question], k: int) -> list[Ranked]:
            given = [[(card, 1 - rank / 100) for rank, card in enumerate(answers[case])] for case in order]
            return [spoil(hits, fault if place < cases else "") for place, hits in enumerate(given)]

        return search

    part = Retriever("spoiled", connect, ScoreKind.OTHER)
    method = exam.suite.retrieval.model_copy(update={"method": "spoiled", "timeout_s": 0.5})
    suite = exam.suite.model_copy(update={"retrieval": method})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RETRIEVERS._load(), "spoiled", part)
        run = retrieve(suite, index, exam.golden, np.zeros((COUNT, 2), np.float32), desk.clock.as_of, Mode.FULL)
        return judge(exam_of(inputs_of(exam, suite), exam.golden, run, desk.clock))


def spoil(hits: list[tuple[str, float]], fault: str) -> Ranked:
    spoiled = {
        "nothing": [],
        "NaN": [(card, float("nan")) for card, _ in hits],
        "infinite": [(hits[0][0], float("inf")), *hits[1:]],
        "duplicates": [hits[0], *hits],
        "k-1": hits[:2],
        "unknown": [("who", 1.0), *hits],
    }
    if fault == "raises":
        return Ranked(Outcome.RAISED, detail="boom")
    pairs = spoiled.get(fault, hits)
    return Ranked(Outcome.ANSWERED if pairs else Outcome.EMPTY, {"spoiled": Hits.of(pairs)}, 900.0 if fault == "late" else 1.0)


def metric_version(desk: Desk, answers: Answers) -> Verdict:
    changed = dataclasses.replace(METRICS["ndcg"], version=METRICS["ndcg"].version + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METRICS._load(), "ndcg", changed)
        return desk.judge(answers)


def metric_gone(desk: Desk, answers: Answers) -> Verdict:
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(METRICS._load(), "stability")
        patch.delitem(METRICS._load(), "redundancy")
        return desk.judge(answers)


def store_short_by_one(desk: Desk, answers: Answers) -> Verdict:
    """A store that says it holds a row less than went in."""
    exam = desk.exam(answers)
    rows = build_rows(exam.suite, exam.kb, chunk(exam.suite, exam.kb))
    with temporary_store("short") as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr("chromadb.api.models.Collection.Collection.count", lambda self: len(rows) - 1)
        ingest(exam.suite, rows, np.eye(len(rows), 8, dtype=np.float32) + 0.1, store, "short")
    return desk.judge(answers)


def starved_index(desk: Desk, answers: Answers) -> Verdict:
    """ef_search = 10 on a thin graph, over vectors nobody chose: half of the answers are not those of exact search."""
    desk.cards = [{"id": f"c{n}", "text": f"c{n}"} for n in range(1500)]
    desk.cards[9]["tier"] = "gold"
    exam = desk.exam(answers)
    starved = {"max_neighbors": 2, "ef_construction": 2, "ef_search": 10}
    retrieval = exam.suite.retrieval.model_copy(update={"method": "dense", "candidates": 10})
    index = exam.suite.index.model_copy(update=starved)
    suite = exam.suite.model_copy(update={"retrieval": retrieval, "index": index})
    rows = build_rows(suite, exam.kb, chunk(suite, exam.kb))
    vectors = np.random.default_rng(1).normal(size=(len(rows) + COUNT, 48)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with temporary_store("starved") as store:
        built = ingest(suite, rows, vectors[: len(rows)], store, "starved")
        run = retrieve(suite, built, exam.golden, vectors[len(rows) :], desk.clock.as_of, Mode.FULL)
    # The rankings are noise; whether the index is what it should be is asked apart.
    verdict = judge(exam_of(inputs_of(exam, suite), exam.golden, run, desk.clock))
    assert any(reason.check == "limits.fidelity" and reason.level == "critical" for reason in verdict.reasons)
    return verdict


def fast_for_promotion(desk: Desk, answers: Answers) -> Verdict:
    evaluation = desk.evaluation({case: answers[case] for case in list(answers)[:50]}, "fast")
    assert evaluation.name == "PASS"
    path = desk.folder / "verdict.json"
    path.write_text(text_of(sealed(verdict_document(evaluation), {})))
    check_verdict(path, evaluation.exam.suite, evaluation.fingerprints, evaluation.started)
    return evaluation.verdict


def of_a_merge(desk: Desk, answers: Answers) -> Verdict:
    """A green verdict of a tree that is not checked out, shown to the door of what is."""
    evaluation = desk.evaluation(answers)
    pair = Merged(target="a" * 40, change="b" * 40, tree="c" * 40)
    provenance = evaluation.provenance.model_copy(update={"merged": pair})
    path = desk.folder / "verdict.json"
    path.write_text(text_of(sealed(verdict_document(dataclasses.replace(evaluation, provenance=provenance)), {})))
    check_verdict(path, evaluation.exam.suite, evaluation.fingerprints, evaluation.started)
    return evaluation.verdict


def of_another_time(desk: Desk, answers: Answers, valid_at: str | None) -> Verdict:
    """A green verdict that did not judge validity when it was made, shown to the door."""
    evaluation = desk.evaluation(answers)
    moment = None if valid_at is None else dt.datetime.fromisoformat(valid_at)
    document = verdict_document(evaluation).model_copy(update={"valid_at": moment})
    path = desk.folder / "verdict.json"
    path.write_text(text_of(sealed(document, {})))
    check_verdict(path, evaluation.exam.suite, evaluation.fingerprints, evaluation.started)
    return evaluation.verdict


def ten_small_falls(desk: Desk, answers: Answers) -> Verdict:
    """Each update falls by less than the tolerance; together they fall by more than twice as much."""
    desk.gates = FREE + "contract = {tolerance = 0.02}"
    for step in range(1, 11):
        fallen = {case: MISS if 2 <= n < 2 + 4 * step else given for n, (case, given) in enumerate(answers.items())}
        assert desk.judge(fallen).exit_code == 0
        desk.accept(fallen)
    return desk.judge(answers)


def slipping(answers: Answers, count: int) -> Answers:
    """So many plain cases one place below the cut."""
    return answers | dict.fromkeys([f"q{n:03d}" for n in range(2, 2 + count)], filler("c1", "c2", "c3", "c0"))


def reworded(desk: Desk, answers: Answers, before: Any) -> Verdict:
    """A pull request that rewords a case; as the baseline words it, its gold stands there."""
    row = next(row for row in desk.cases if row["id"] == "q005")
    desk.case("q005", query="q005? In easier words?", **{k: v for k, v in row.items() if k not in ("id", "query")})
    desk.judges_edits, desk.earlier = True, {"q005": before}
    return desk.judge(answers)


def taken_out(desk: Desk, answers: Answers) -> Verdict:
    """Failing cases are taken out, a few at a time: together more than twice the tolerance."""
    for night in range(5):
        answers = without(desk, answers, *(f"q{n:03d}" for n in range(10 + 2 * night, 12 + 2 * night)))
        desk.accept(answers)
    return desk.judge(answers)


def taken_out_and_put_back(desk: Desk, answers: Answers) -> Verdict:
    """Nine failing cases are taken out, accepted, put back as new ones that fail, accepted; then one more slips."""
    names = [f"q{n:03d}" for n in range(10, 19)]
    rows = [row for row in desk.cases if row["id"] in names]
    desk.accept(without(desk, answers, *names))
    desk.cases += rows
    back = answers | dict.fromkeys(names, MISS)
    assert desk.accept(back).cases["q010"].anchor is not None
    desk.accept(slipping(back, 1))
    return desk.judge(back)


def new_and_failing_by_and_by(desk: Desk, answers: Answers) -> Verdict:
    """Eleven new cases fail, which warns: of 251 they are more than twice the tolerance."""
    new = [f"new{n}" for n in range(11)]
    for name in new:
        desk.case(name)
    desk.accept(answers | dict.fromkeys(new[:10], HIT) | {"new10": MISS})
    desk.accept(answers | dict.fromkeys(new, MISS), accept_regression=True)
    return desk.judge(answers)


def begun_anew(desk: Desk, answers: Answers) -> Verdict:
    """The baseline is taken out of the working tree, so that everything is a first baseline."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "accepted"]):
        subprocess.run(["git", *arguments], cwd=desk.folder, check=True, capture_output=True)
    for file in desk.folder.glob("baseline*"):
        file.unlink()
    desk.accept(some(answers, COUNT, MISS), accept_regression=True)
    return desk.judge(answers)


def a_blank_a_night(desk: Desk, answers: Answers) -> Verdict:
    """Each night two cases slip, are accepted, and get a blank that makes other cases of them."""
    for night in range(6):
        for n in range(2 * night, 2 * night + 2):
            desk.case(f"q{n + 2:03d}", query=f"q{n + 2:03d}? ")
        desk.accept(slipping(answers, 2 * night + 2), accept_regression=True)
    return desk.judge(answers)


def a_slip_a_night(desk: Desk, answers: Answers) -> Verdict:
    """Each night one more case slips, is looked at and accepted; what was accepted is not forgotten."""
    for night in range(1, 7):
        desk.accept(slipping(answers, night))
    return desk.judge(answers)


def a_slip_slips_on(desk: Desk, answers: Answers) -> Verdict:
    desk.accept(slipping(answers, 1))
    return desk.judge(answers | {"q002": filler("c1", "c2", "c3", "c4", "c0")})


def cache_that_lies(desk: Desk, answers: Answers, which: str) -> Verdict:
    """Vectors that the model did not give, of rows or of questions, in a cache whose digests fit."""
    exam = desk.exam(answers)
    suite, cache = exam.suite, desk.folder / "vectors"
    cases = dict(list(exam.golden.items())[:12])
    model, rows = identify_model(suite), build_rows(suite, exam.kb, chunk(suite, exam.kb))
    vectors, questions = embed_rows(suite, model, rows, cache), embed_queries(suite, model, cases, cache)
    if which == "rows":
        vectors = np.roll(vectors, 1, axis=0)
    elif which == "questions":
        questions = np.roll(questions, 1, axis=0)
    elif which == "one number":
        vectors[:, 0] = np.nan
    given = Material(rows, vectors, model, len(rows), "", "", questions=dict(zip(cases, questions, strict=True)))
    with begun(suite, given, cases, "a run", cache) as look:
        confirm(look)
    return desk.judge(answers)


def believed(desk: Desk, answers: Answers, written_by: str, read_by: str, **edits: object) -> Verdict:
    """A green verdict, written with a key, edited and sealed again, and shown at the door of who has a key."""
    with pytest.MonkeyPatch.context() as patch:
        set_key(patch, written_by)
        evaluation = desk.evaluation(answers)
        document = sealed(verdict_document(evaluation), {}).model_copy(update=edits)
        (desk.folder / "verdict.json").write_text(text_of(document.model_copy(update={"seal": seal_of(document)})))
        set_key(patch, read_by)
        check_verdict(desk.folder / "verdict.json", evaluation.exam.suite, evaluation.fingerprints, evaluation.started)
    return evaluation.verdict


def set_key(patch: pytest.MonkeyPatch, key: str) -> None:
    if key == "none":
        patch.delenv("KBGATE_KEY", raising=False)
    else:
        patch.setenv("KBGATE_KEY", key)


def linked_model(desk: Desk, answers: Answers, target: str) -> Verdict:
    """A model of which a part stands behind a link."""
    exam = desk.exam(answers)
    (desk.folder / "m").mkdir()
    (desk.folder / "m" / "model.safetensors").write_bytes(b"x")
    (desk.folder / "m" / "1_Pooling").symlink_to(target)
    embedding = exam.suite.embedding.model_copy(update={"model": "m"})
    identify_model(exam.suite.model_copy(update={"embedding": embedding}))
    return desk.judge(answers)


def short_candidate(production: FolderProduction, late: Evaluation, seen: Pointer) -> None:
    fill(production, late.build, ROWS - 1)
    promote(production, late, late.exam.clock.now, seen)


def pointer_moved_meanwhile(production: FolderProduction, late: Evaluation, seen: Pointer) -> None:
    production.move(seen.then("rolled back", seen.previous[0], (), late.exam.clock.now))
    fill(production, late.build)
    promote(production, late, late.exam.clock.now, seen)


def kept_build_lost_a_row(production: FolderProduction, late: Evaluation, seen: Pointer) -> None:
    with opened(production, seen.previous[0].build) as collection:
        collection.delete(ids=["r0"])
    roll_back(production, late.exam.suite, "", late.exam.clock.now)


def kept_build_says_something_else(production: FolderProduction, late: Evaluation, seen: Pointer) -> None:
    with opened(production, seen.previous[0].build) as collection:
        collection.update(ids=["r0"], metadatas=[{"language": "tr"}])
    roll_back(production, late.exam.suite, "", late.exam.clock.now)


def kept_build_removed(production: FolderProduction, late: Evaluation, seen: Pointer) -> None:
    shutil.rmtree(production.place(seen.previous[0].build))
    roll_back(production, late.exam.suite, "", late.exam.clock.now)


def kept_build_nobody_examined(production: FolderProduction, late: Evaluation, seen: Pointer) -> None:
    (production.home / "CURRENT").unlink()
    fill(production, late.build)
    promote(production, late, late.exam.clock.now, production.read())
    roll_back(production, late.exam.suite, "", late.exam.clock.now)


def pointer_edited(old: str, new: str) -> Harm:
    def harm(production: FolderProduction, late: Evaluation, seen: Pointer) -> None:
        edit_text(production.home / "CURRENT", old, new)
        resolve(production.home)

    return harm


def in_production(desk: Desk, harm: Harm) -> Verdict:
    """Two promotions, and then something goes wrong with the third, or with what is served or kept."""
    evaluation = evaluation_of(desk.folder / "small")
    production = FolderProduction(desk.folder / "serving", "desk")
    for number in (1, 2, 3):
        named = dataclasses.replace(evaluation, build=build(number, "desk"))
        seen = begin(production, named.exam.clock.now)
        if number == 3:
            harm(production, named, seen)
            break
        fill(production, named.build)
        assert promote(production, named, named.exam.clock.now, seen).promoted
    return evaluation.verdict


Harm = Callable[[FolderProduction, Evaluation, Pointer], None]
Way = Callable[[Desk, Answers], Verdict]
FREE = "newly_failing = {ceiling = 1.0}\n"


def of_documents(desk: Desk, answers: Answers, spoil: Callable[[Path], object] | None = None, kb: str = "") -> Verdict:
    """The same cards, read from a folder of documents, with the one that answers spoiled."""
    folder = desk.folder / "kb"
    folder.mkdir()
    for card in desk.cards:
        head = f"---\ntier: {card['tier']}\n---\n" if card.get("tier") else ""
        (folder / f"{card['id']}.md").write_text(head + card["text"])
    desk.settings += f'[kb]\npath = "kb"\n{kb}\n'
    if spoil:
        assert desk.judge(answers).name == "PASS"
        spoil(folder / "c0.md")
    return desk.judge(answers)


def became_a_link(card: Path) -> None:
    card.rename(card.parent.parent / "c0.md")
    card.symlink_to(card.parent.parent / "c0.md")


def became_mdx(card: Path) -> None:
    card.rename(card.with_suffix(".mdx"))


def was_hidden(card: Path) -> None:
    (card.parent / ".drafts").mkdir()
    card.rename(card.parent / ".drafts" / card.name)


def became_binary(card: Path) -> None:
    card.write_bytes(b"c0\0")


def became_a_pointer(card: Path) -> None:
    card.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 2\n")


def became_a_merge(card: Path) -> None:
    card.write_text("<<<<<<< HEAD\nc0\n=======\nc1\n>>>>>>> theirs\n")


def says_a_billion_values(card: Path) -> None:
    aliases = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 10)}]\n" for n in range(10))
    card.write_text(f"---\n{aliases}---\nc0\n")


def is_nested_without_end(card: Path) -> None:
    card.write_text(f"---\na: {'[' * 50_000}\n---\nc0\n")


def alike_to_the_eye(desk: Desk, answers: Answers) -> Verdict:
    desk.cards.append({"id": "c\u20600", "text": "another text"})
    return desk.judge(answers)


WAYS: dict[str, tuple[Way, str]] = {
    "identical runs": (lambda d, a: d.judge(a), "PASS"),
    "one question raised": (lambda d, a: d.judge(a | {"q005": "raised"}), "BLOCK"),
    "every question raised": (lambda d, a: d.judge(some(a, COUNT, "raised")), "ERROR"),
    "one fifth raised": (lambda d, a: d.judge(some(a, 48, "raised")), "BLOCK"),
    "one more than a fifth raised": (lambda d, a: d.judge(some(a, 49, "raised")), "ERROR"),
    "an answer too late": (lambda d, a: d.judge(a | {"q005": "timeout"}), "BLOCK"),
    "a malformed answer": (lambda d, a: d.judge(a | {"q005": "malformed"}), "BLOCK"),
    "nothing returned": (lambda d, a: d.judge(a | {"q005": []}), "BLOCK"),
    "nothing returned to anyone": (lambda d, a: d.judge(some(a, COUNT, [])), "BLOCK"),
    "a case missing from the run": (lambda d, a: d.judge({k: v for k, v in a.items() if k != "q005"}), "ERROR"),
    "a NaN among the scores": (lambda d, a: spoil_exam(d, a, value=float("nan")), "ERROR"),
    "an infinite score": (lambda d, a: spoil_exam(d, a, value=float("inf")), "ERROR"),
    "a case missing from the baseline": (baseline_without_a_case, "InputError"),
    "a metric the run lacks": (lambda d, a: baseline_with(d, a, '"ndcg": 1', '"gone": 1'), "InputError"),
    "a baseline of another schema": (lambda d, a: baseline_with(d, a, '"schema": 3', '"schema": 1'), "InputError"),
    "an empty golden set": (nothing_asked, "InputError"),
    "only no_match": (only_no_match, "INCONCLUSIVE"),
    "no gates": (lambda d, a: gates(d, a, 'newly_failing = {ceiling = 1.0, level = "advisory"}'), "INCONCLUSIVE"),
    "all gates advisory": (
        lambda d, a: gates(d, a, 'newly_failing = {ceiling = 1.0, level = "advisory"}\n'
                           'contract = {tolerance = 0.02, level = "advisory"}'), "INCONCLUSIVE"),
    "only a gate that looks at no gold": (
        lambda d, a: gates(d, a, 'newly_failing = {ceiling = 1.0, level = "advisory"}\nredundancy = {ceiling = 1.0}'),
        "INCONCLUSIVE"),
    "tolerance 1, ceiling 1, floor 0, slack 100": (lambda d, a: open_wide(d, a, ""), "INCONCLUSIVE"),
    "a ceiling no metric can pass": (lambda d, a: open_wide(d, a, "failing = {ceiling = 1.0}"), "INCONCLUSIVE"),
    "significant, of as many clusters as can never be": (two_clusters, "INCONCLUSIVE"),
    "newly failing within the ceiling": (
        lambda d, a: (setattr(d, "gates", "newly_failing = {ceiling = 0.05}\ncontract = {tolerance = 0.1}"),
                      d.judge({**a, "q005": MISS}))[1], "WARN"),
    "a gate on what was not measured": (lambda d, a: gates(d, a, "false_answer = {ceiling = 0.5}"), "INCONCLUSIVE"),
    "a lower-is-better metric rises": (
        lambda d, a: (setattr(d, "gates", FREE + "failing = {tolerance = 0.02}"), d.judge(some(a, 12, MISS)))[1], "BLOCK"),
    "the mean hardly moves and one case fails": (lambda d, a: d.judge(a | {"q005": MISS}), "BLOCK"),
    "the failing case edited": (edit_the_failing, "BLOCK"),
    "60 of 240 edited": (lambda d, a: edit(d, a, *[f"q{n:03d}" for n in range(100, 160)]), "INCONCLUSIVE"),
    "a canary removed": (lambda d, a: remove(d, a, "q000"), "BLOCK"),
    "a canary edited": (lambda d, a: edit(d, a, "q000"), "BLOCK"),
    "a tier-gold case edited": (lambda d, a: edit(d, a, "q001"), "BLOCK"),
    "a tier-gold case removed": (lambda d, a: remove(d, a, "q001"), "BLOCK"),
    "an allowance that ended yesterday": (lambda d, a: allowed(d, a, dt.date(2026, 5, 31)), "BLOCK"),
    "an allowance on its last day": (lambda d, a: allowed(d, a, dt.date(2026, 6, 1)), "PASS"),
    "an allowance for another case": (lambda d, a: allowed(d, a, dt.date(2027, 1, 1), "q006"), "BLOCK"),
    "an allowance for nobody": (lambda d, a: allowed(d, a, dt.date(2027, 1, 1), "q999"), "InputError"),
    "gold gone from the knowledge base": (gold_gone, "BLOCK"),
    "a gold that lost its text and still ranks": (lambda d, a: texts(d, a, "twelve days", ""), "BLOCK"),
    "a gold with a tenth of its text": (lambda d, a: texts(d, a, "twelve days " * 20, "twelve days"), "BLOCK"),
    "a gold padded with what nobody sees": (
        lambda d, a: texts(d, a, "twelve days " * 20, "none" + "\u200b" * 200), "BLOCK"),
    "a gold with less than half of its text": (lambda d, a: texts(d, a, "twelve days " * 20, "twelve days " * 9), "WARN"),
    "a gold with most of its text": (lambda d, a: texts(d, a, "twelve days " * 20, "twelve days " * 12), "PASS"),
    "a gold without text at the first run": (first_run_without_text, "BLOCK"),
    "a gold without text, accepted knowingly": (emptied_and_accepted, "Refused"),
    "an access rule of one shape, a field of another": (
        lambda d, a: ruled(d, a, "entitled", {"audience": "hr"}, first=True, audience=["hr"]), "InputError"),
    "a filter of one type, a field of another": (
        lambda d, a: ruled(d, a, "filter", {"audience": {"$gt": 1}}, first=True, audience="hr"), "InputError"),
    "a filter that can keep no card out": (
        lambda d, a: ruled(d, a, "filter", {"audience": {"$ne": "it"}}, first=True, audience=["it"]), "InputError"),
    "an access rule on a field that no card has": (
        lambda d, a: ruled(d, a, "entitled", {"audience": "hr"}, first=True), "InputError"),
    "a field that became a list": (lambda d, a: ruled(d, a, "entitled", {"audience": "hr"}, audience=["hr"]), "BLOCK"),
    "a field that is gone": (lambda d, a: ruled(d, a, "entitled", {"audience": "hr"}), "BLOCK"),
    "an asker who may see no gold, accepted so": (outsider, "WARN"),
    "a card rejected": (rejected_card, "BLOCK"),
    "a card rejected within the share": (lambda d, a: rejected_card(d, a, share=0.1), "WARN"),
    "a card rejected that an accepted top k names": (lambda d, a: rejected_card(d, a, bad={"id": "c1"}, share=1.0), "BLOCK"),
    "a card of unknown id rejected, and another gone": (
        lambda d, a: (d.cards.pop(1), rejected_card(d, a, bad={"text": "c1"}, share=1.0))[1], "BLOCK"),
    "a quotation mark that takes cards along": (half_a_table, "BLOCK"),
    "a new case failing": (new_and_failing, "WARN"),
    "a new canary failing": (lambda d, a: new_and_failing(d, a, canary=True), "BLOCK"),
    "a fall of exactly the tolerance": (
        lambda d, a: (setattr(d, "gates", FREE + "contract = {tolerance = 0.05}"), d.judge(some(a, 14, MISS) | {
            "q000": HIT, "q001": filler("c0", "c9")}))[1], "WARN"),
    "a fall of a hair more": (
        lambda d, a: (setattr(d, "gates", FREE + "contract = {tolerance = 0.0499999}"), d.judge(some(a, 14, MISS) | {
            "q000": HIT, "q001": filler("c0", "c9")}))[1], "BLOCK"),
    "a suite with one case": (one_case, "INCONCLUSIVE"),
    "a rule no such set can decide": (
        lambda d, a: gates(d, a, FREE + 'contract = {tolerance = 0.02, rule = "significant"}'), "INCONCLUSIVE"),
    "an interval that excludes nothing": (
        lambda d, a: gates(d, a, FREE + 'contract = {tolerance = 0.001, rule = "noninferior"}'), "INCONCLUSIVE"),
    "an interval that excludes the fall": (
        lambda d, a: gates(d, a, FREE + 'contract = {tolerance = 0.05, rule = "noninferior"}'), "PASS"),
    "a significant fall": (
        lambda d, a: (setattr(d, "gates", FREE + 'contract = {tolerance = 0.04, rule = "significant"}'),
                      d.judge(some(a, 40, MISS) | {"q000": HIT}))[1], "BLOCK"),
    "fewer cases than a gate needs": (lambda d, a: gates(d, a, FREE + "contract = {tolerance = 0.02, min_n = 241}"),
                                      "INCONCLUSIVE"),
    "a slice fell": (lambda d, a: slice_fell(d, a, 30), "BLOCK"),
    "a slice too small to block": (lambda d, a: slice_fell(d, a, 41), "WARN"),
    "a slice whose cases were all edited": (slice_edited, "INCONCLUSIVE"),
    "a failing case moved to a larger topic": (moved_to_a_larger_topic, "BLOCK"),
    "all cases put into one cluster": (one_cluster, "BLOCK"),
    "a slice whose cases were all removed": (slice_removed, "INCONCLUSIVE"),
    "an excerpt lost, and its label edited": (lambda d, a: excerpt_edited(d, a, ""), "WARN"),
    "an excerpt of a tier-gold card lost, and its label edited": (lambda d, a: excerpt_edited(d, a, "gold"), "BLOCK"),
    "one row accepted, another case failing": (lambda d, a: row_accepted(d, a, "q005"), "BLOCK"),
    "both rows accepted": (lambda d, a: row_accepted(d, a, "q005", "q006"), "PASS"),
    "rows accepted one by one beyond what the anchor allows": (rows_accepted_one_by_one, "Refused"),
    "a row accepted that nothing asks": (lambda d, a: row_accepted(d, a, "q999"), "InputError"),
    "the baseline of another suite": (another_suites_baseline, "InputError"),
    "a baseline of the schema before": (lambda d, a: baseline_with(d, a, '"schema": 3', '"schema": 2'), "InputError"),
    "two lines for one figure": (
        lambda d, a: gates(d, a, 'contract = {tolerance = 0.5}\n"contract@3" = {floor = 0.1}'), "InputError"),
    "quality below what is demanded": (lambda d, a: acceptance(d, a, "quality = 0.99", 10), "BLOCK"),
    "more failing than allowed": (lambda d, a: acceptance(d, a, "quality = 0.5\nfailing_share = 0.01", 10), "BLOCK"),
    "noise beside half of the questions, its mean below the ceiling": (noise_that_a_mean_hides, "BLOCK"),
    "noise that is not calibrated": (lambda d, a: acceptance(d, a, "noise = 0.1", 0), "PASS"),
    "noise above what was calibrated for another number of golds": (
        lambda d, a: acceptance(d, a, 'noise = 0.1\ncalibrated = {run = "", date = 2026-05-01, noise = {2 = 1}}', 0), "BLOCK"),
    "failing cases nobody explained": (lambda d, a: acceptance(d, a, "quality = 0.5", 10), "BLOCK"),
    "failing cases, the cause of all but one proven": (lambda d, a: explained(d, a, 9), "BLOCK"),
    "failing cases, the cause of each proven": (lambda d, a: explained(d, a, 10), "WARN"),
    "failing cases, and a diagnosis that broke": (lambda d, a: explained(d, a, 10, "KeyError"), "BLOCK"),
    **{
        f"a retriever: {fault}, for {'one case' if cases == 1 else 'all'}": (
            lambda d, a, fault=fault, cases=cases: searched(d, a, fault, cases), "BLOCK" if cases == 1 else "ERROR")
        for fault in ("raises", "nothing", "NaN", "infinite", "duplicates", "k-1", "unknown", "late")
        for cases in (1, COUNT)
    },
    "a retriever that does as it should": (lambda d, a: searched(d, a, "", 0), "PASS"),
    "a metric's version changed": (metric_version, "INCONCLUSIVE"),
    "a metric of the baseline vanished": (metric_gone, "INCONCLUSIVE"),
    "a store short by one row": (store_short_by_one, "Unmeasured"),
    "an index with ef_search = 10": (starved_index, "BLOCK"),
    "a fast verdict used for promotion": (fast_for_promotion, "Refused"),
    "a verdict of a merge that is not checked out": (of_a_merge, "Refused"),
    "a verdict of the day it was made": (lambda d, a: of_another_time(d, a, "2026-06-01T00:00:00+00:00"), "PASS"),
    "a verdict of a day that is pinned": (lambda d, a: of_another_time(d, a, "2026-05-31T00:00:00+00:00"), "Refused"),
    "a verdict of a day to come": (lambda d, a: of_another_time(d, a, "2026-06-02T00:00:00+00:00"), "Refused"),
    "a verdict that does not say when cards had to be valid": (lambda d, a: of_another_time(d, a, None), "Refused"),
    "as many slips as may be": (lambda d, a: d.judge(slipping(a, 2)), "WARN"),
    "one slip more than may be": (lambda d, a: d.judge(slipping(a, 3)), "BLOCK"),
    "a slip a night, each one accepted": (a_slip_a_night, "Refused"),
    "an accepted slip slips on": (a_slip_slips_on, "BLOCK"),
    "a case reworded that fails as it was": (lambda d, a: reworded(d, a, MISS), "BLOCK"),
    "a case reworded that slips as it was": (lambda d, a: reworded(d, a, filler("c1", "c2", "c3", "c0")), "WARN"),
    "a case reworded whose old wording raised": (lambda d, a: reworded(d, a, "raised"), "BLOCK"),
    "a case reworded whose old wording got nothing": (lambda d, a: reworded(d, a, []), "BLOCK"),
    "a case reworded that passes in both wordings": (lambda d, a: reworded(d, a, HIT), "WARN"),
    "failing cases taken out": (taken_out, "Refused"),
    "failing cases taken out and put back": (taken_out_and_put_back, "Refused"),
    "new cases that fail, accepted": (new_and_failing_by_and_by, "Refused"),
    "a baseline begun anew": (begun_anew, "Refused"),
    "a blank a night": (a_blank_a_night, "Refused"),
    "a baseline accepted ten times with small falls": (ten_small_falls, "Refused"),
    "a cache that says what the model says": (lambda d, a: cache_that_lies(d, a, ""), "PASS"),
    "a cache with the rows' vectors swapped": (lambda d, a: cache_that_lies(d, a, "rows"), "Unmeasured"),
    "a cache with the questions' vectors swapped": (lambda d, a: cache_that_lies(d, a, "questions"), "Unmeasured"),
    "a cache with vectors that are no numbers": (lambda d, a: cache_that_lies(d, a, "one number"), "Unmeasured"),
    "a verdict by the key of whoever reads it": (lambda d, a: believed(d, a, "ours", "ours"), "PASS"),
    "a verdict by another key": (lambda d, a: believed(d, a, "theirs", "ours"), "Refused"),
    "a verdict without an HMAC, read with a key": (lambda d, a: believed(d, a, "none", "ours"), "Refused"),
    "a verdict of another build, sealed again": (lambda d, a: believed(d, a, "ours", "ours", build="another"), "Refused"),
    "a verdict that lists other files, sealed again": (
        lambda d, a: believed(d, a, "ours", "ours", files={"comment.md": "0" * 64}), "Refused"),
    "a verdict whose HMAC was taken out": (lambda d, a: believed(d, a, "ours", "ours", hmac=""), "Refused"),
    "a blank key that writes": (lambda d, a: believed(d, a, " ", "ours"), "InputError"),
    "a blank key that reads": (lambda d, a: believed(d, a, "none", ""), "InputError"),
    "a model behind a link that leads nowhere": (lambda d, a: linked_model(d, a, "nowhere"), "InputError"),
    "a model behind a link that leads back": (lambda d, a: linked_model(d, a, "."), "InputError"),
    "a gold that became a link": (lambda d, a: of_documents(d, a, became_a_link), "BLOCK"),
    "a gold in a file of a kind that is not read": (lambda d, a: of_documents(d, a, became_mdx), "BLOCK"),
    "a gold in a folder that is hidden": (lambda d, a: of_documents(d, a, was_hidden), "BLOCK"),
    "a gold that became binary": (lambda d, a: of_documents(d, a, became_binary), "BLOCK"),
    "a gold that [kb] excludes": (lambda d, a: of_documents(d, a, kb='exclude = ["c0.md"]'), "BLOCK"),
    "a slip of the pen in [kb] exclude": (lambda d, a: of_documents(d, a, kb='exclude = ["drfts/**"]'), "InputError"),
    "a gold whose front matter says a billion values": (lambda d, a: of_documents(d, a, says_a_billion_values), "InputError"),
    "a gold whose front matter is nested without end": (lambda d, a: of_documents(d, a, is_nested_without_end), "InputError"),
    "a gold of characters that nobody sees": (lambda d, a: texts(d, a, "twelve days", "\u200b\u2060" * 9), "BLOCK"),
    "a card whose id is a gold's to the eye": (alike_to_the_eye, "InputError"),
    "a pointer in the place of a gold": (lambda d, a: of_documents(d, a, became_a_pointer), "InputError"),
    "both sides of a merge in a gold": (lambda d, a: of_documents(d, a, became_a_merge), "InputError"),
    "a baseline older than allowed": (lambda d, a: (setattr(d, "today", dt.date(2026, 12, 1)), d.judge(a))[1], "WARN"),
    "a candidate short by a row": (lambda d, a: in_production(d, short_candidate), "Unmeasured"),
    "a pointer that moved since the exam began": (lambda d, a: in_production(d, pointer_moved_meanwhile), "Unmeasured"),
    "a rollback to a build that lost a row": (lambda d, a: in_production(d, kept_build_lost_a_row), "Refused"),
    "a rollback to a build that was changed": (lambda d, a: in_production(d, kept_build_says_something_else), "Refused"),
    "a rollback to a build that was removed": (lambda d, a: in_production(d, kept_build_removed), "Refused"),
    "a rollback to a build nobody examined": (lambda d, a: in_production(d, kept_build_nobody_examined), "Refused"),
    "a place outside of production": (lambda d, a: in_production(d, pointer_edited("versions/", "../")), "Refused"),
    "a pointer of a newer kbgate": (lambda d, a: in_production(d, pointer_edited('"schema": 2', '"schema": 3')), "Refused"),
}  # fmt: skip
EXITS = {"PASS": 0, "WARN": 0, "BLOCK": 1, "INCONCLUSIVE": 3, "ERROR": 4, "InputError": 2, "Refused": 1, "Unmeasured": 4}

RAISED: dict[str, type[KbgateError]] = {"InputError": InputError, "Refused": Refused, "Unmeasured": Unmeasured}


@pytest.mark.parametrize("name", WAYS)
def test_a_way_to_stay_green_by_accident(name: str, desk: Desk, answers: Answers) -> None:
    way, expected = WAYS[name]
    if expected in RAISED:
        with pytest.raises(KbgateError) as refused:
            way(desk, answers)
        assert isinstance(refused.value, RAISED[expected])
        assert refused.value.exit_code == EXITS[expected]
        return
    verdict = way(desk, answers)
    said = [f"{r.level}: {r.sentence}" for r in verdict.reasons]
    if name == "an allowance on its last day":
        assert (verdict.name, len(said)) == ("PASS", 1), said
        assert "is in force until 2026-06-01" in said[0]
        return
    assert (verdict.name, verdict.exit_code) == (expected, EXITS[expected]), said


def test_there_are_a_hundred() -> None:
    assert len(WAYS) >= 100


def test_the_friday_story(tmp_path: Path) -> None:
    """A mean of 0.96, and one case newly fails: the gate blocks and its first line names the case."""
    desk = Desk(tmp_path)
    for n in range(200):
        desk.case(f"q{n:03d}")
    given: Answers = {f"q{n:03d}": MISS if n >= 192 else HIT for n in range(200)}
    desk.accept(given)
    friday = given | {"q005": MISS, "q199": HIT}
    row = desk.exam(friday).comparison.figure("exact", Figure("contract", 3))
    assert (row.current, row.delta) == (0.96, 0.0)
    verdict = desk.judge(friday)
    assert (verdict.name, verdict.exit_code) == ("BLOCK", 1)
    assert verdict.reasons[0].sentence == "1 case newly failing: q005"


def test_the_fast_subset_opens_no_baseline(desk: Desk, answers: Answers) -> None:
    evaluation = desk.evaluation({"q000": HIT}, mode="fast")
    with pytest.raises(Refused, match="never from the fast subset"):
        write_baseline(evaluation, "r", False)


def test_every_metric_that_judges_gold_loses_nothing(desk: Desk, answers: Answers) -> None:
    """A figure a case had and has no longer counts as the worst it could be, in both directions."""
    comparison = desk.exam(some(answers, 10, "raised")).comparison
    for part in METRICS.values():
        if part.judges_gold and part.stored:
            assert comparison.figure("exact", figure_at(part, 3)).n == COUNT, part.name


def test_make_carries_no_exit_code(tmp_path: Path) -> None:
    """Under make every failure is 2: whoever reads codes calls kbgate itself, as the README says."""
    makefile = tmp_path / "Makefile"
    for code in (1, 3, 4):
        makefile.write_text(f"eval:\n\t@exit {code}\n")
        assert subprocess.run(["make", "-s", "-C", tmp_path, "eval"], capture_output=True).returncode == 2
