"""Labels in doubt: cards nobody judged that stand above a gold and say much the same. A person decides, a file remembers.

`label_review.csv` beside a run's report has one row per pair; whoever reads it writes yes or no into `same`, and
`kbgate import-labels` writes the yes into golden.jsonl.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from kbgate.tasks.conclusions import Evaluation, Exam
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.domain import Inputs
from kbgate.tasks.errors import InputError, Problem, did_you_mean
from kbgate.tasks.findings import Doubt
from kbgate.tasks.inputs.golden import FILE
from kbgate.tasks.records import Record, nfc, read_jsonl, read_table, write_text

REVIEW = "label_review.csv"
COLUMNS = ("case", "question", "gold", "gold_rank", "gold_text", "candidate", "rank", "candidate_text", "similarity", "same")
CLOSE = 0.75
"""Cosine similarity of two cards' nearest rows from which on one may answer what the other does."""
Pair = tuple[str, str, str]
"""Case, gold, candidate."""
Line = dict[str, JsonValue]
"""A case as it stands in golden.jsonl."""
_BEGINS = r"(\A|[\n;,\t|])"
"""Where a cell begins, for one program or another."""
_FORMULA, _DEFUSED = (re.compile(f"{_BEGINS}{mark}(?='*[=+\\-@\\t\uff1d\uff0b\uff0d\uff20])") for mark in ("", "'"))
"""What a spreadsheet would compute, and the same behind an apostrophe: texts that begin with some get one more, and lose it."""
_FORMS = ("must_cite_one_of", "expected", "groups", "evidence")
_ANSWERS = {"yes": True, "y": True, "no": False, "n": False, "": None}


def doubts_of(exam: Exam, lab: Laboratory, failing: Collection[str]) -> Iterator[Doubt]:
    """Of each failing case, the unjudged cards that stand above a gold it misses and are close to it."""
    for place in exam.scores.placements.values():
        if place.case not in failing:
            continue
        for gold, rank in sorted(place.ranks.items()):
            if gold not in lab.cards or (rank is not None and rank <= exam.suite.top_k):
                continue
            for at, candidate in enumerate(place.top, start=1):
                if candidate in place.grades or candidate not in lab.cards:
                    continue
                similarity = lab.similarity(gold, candidate)
                if similarity >= CLOSE:
                    yield Doubt(place.case, gold, rank, candidate, at, round(similarity, 4))


def review_table(doubts: tuple[Doubt, ...], exam: Exam) -> str:
    """The doubts as CSV, with the texts to read and an empty column `same` to fill in."""
    texts = {name: f"{card.title}\n{card.text}".strip() for name, card in exam.kb.cards.items()}
    out = io.StringIO()
    # Every cell in quotation marks: a program that takes another character for the separator splits none of them.
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    for doubt in doubts:
        row = (doubt.case, exam.golden[doubt.case].query, doubt.gold, doubt.gold_rank or "", texts[doubt.gold], doubt.candidate,
               doubt.rank, texts[doubt.candidate], f"{doubt.similarity:.4f}", "")  # fmt: skip
        writer.writerow([_cell(str(value)) for value in row])
    return out.getvalue()


def review_of(evaluation: Evaluation) -> dict[str, str]:
    """label_review.csv and what stands in it, where a label is in doubt."""
    doubts = evaluation.diagnosis.doubts
    return {REVIEW: review_table(doubts, evaluation.exam)} if doubts else {}


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula, in whole or in a part that a line end or a separator cuts off."""
    return _FORMULA.sub("\\1'", text.replace("\r\n", "\n").replace("\r", "\n"))


def _text(cell: str) -> str:
    """The text that `_cell` made a cell of."""
    return _DEFUSED.sub("\\1", cell)


@dataclass(frozen=True, slots=True)
class Imported:
    """What a review came to."""

    added: tuple[tuple[str, str], ...]
    """(case, card) of every new gold."""
    refused: int
    open: int


def import_labels(inputs: Inputs, path: Path) -> Imported:
    """Read a filled-in review and write every yes into golden.jsonl: the candidate is as good as that gold from now on.

    Raises `InputError` with every mistake of the file; then nothing is written.
    """
    golden = inputs.suite.folder / FILE
    if not golden.exists():
        raise InputError([Problem(FILE, 0, "is not there; labels of a BEIR folder are changed in its qrels")])
    records, problems = read_table(path)
    lines, of_golden = read_jsonl(golden)
    cases: dict[str, Line] = {nfc(str(record.content.get("id", ""))): dict(record.content) for record in lines}
    cards, answers = frozenset(inputs.kb.cards), dict[Pair, bool | None]()
    problems = [*problems, *of_golden, *_no_answers(path, records)]
    for record in records:
        mistake = _take(record, cases, cards, answers)
        if mistake:
            problems.append(Problem(record.file, record.line, mistake))
    added = list(dict.fromkeys((case, candidate) for (case, _, candidate), answer in answers.items() if answer))
    if problems:
        raise InputError(problems)
    if added:
        _rewrite(golden, lines, {case: cases[case] for case, _ in added})
    given = list(answers.values())
    return Imported(tuple(added), given.count(False), given.count(None))


def _rewrite(golden: Path, lines: Sequence[Record], changed: Mapping[str, Line]) -> None:
    """Write changed cases in the places of their lines, and every other line as it is."""
    text = golden.read_bytes().decode("utf-8").split("\n")  # with the line ends it has
    for line in lines:
        name = nfc(str(line.content["id"]))
        if name in changed:
            end = "\r" if text[line.line - 1].endswith("\r") else ""
            text[line.line - 1] = json.dumps(changed[name], ensure_ascii=False) + end
    write_text(golden, "\n".join(text))


def _no_answers(path: Path, records: Sequence[Record]) -> Iterator[Problem]:
    """What makes a file no review at all."""
    if not records:
        yield Problem(path.name, 0, "holds no row; fill in the label_review.csv of a run")
        return
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        if "same" not in next(csv.reader(file), []):
            yield Problem(path.name, 1, "has no column 'same'; write yes or no into it")


def _take(record: Record, cases: Mapping[str, Line], cards: frozenset[str], answers: dict[Pair, bool | None]) -> str:
    """Take one row's answer, and its yes into the case; returns what is wrong with the row, or ""."""
    row = {name: _text(str(record.content.get(name, ""))).strip() for name in ("case", "gold", "candidate", "same")}
    if row["same"].lower() not in _ANSWERS:
        return f"same: found '{row['same']}'; write yes, no or nothing"
    if row["case"] not in cases:
        return f"unknown case '{row['case']}'; {did_you_mean(row['case'], cases)}"
    if row["candidate"] not in cards:
        return f"unknown card '{row['candidate']}'; {did_you_mean(row['candidate'], cards)}"
    pair, answer = (row["case"], row["gold"], row["candidate"]), _ANSWERS[row["same"].lower()]
    if answers.setdefault(pair, answer) is not answer:
        return f"'{pair[2]}' is answered twice for case '{pair[0]}'; keep one row"
    return _accept(cases[row["case"]], row["gold"], row["candidate"]) if answer else ""


def _accept(case: Line, gold: str, candidate: str) -> str:
    """Add a card beside a gold of a case, in whatever form the case is written; returns what forbids it, or ""."""
    if case.get("evidence"):
        return f"case '{case['id']}' names evidence; add the excerpt of '{candidate}' by hand"
    groups = _groups(case)
    place = next((group for group in groups if gold in group), None)
    if place is None:
        return f"'{gold}' is no gold of case '{case['id']}'"
    if candidate not in place:
        place.append(candidate)
    if "must_cite_one_of" in case:
        case["must_cite_one_of"] = [*place]
    elif _only_graded(case):
        pass  # its grades are its gold, and get the candidate below
    else:
        case.pop("expected", None)
        case["groups"] = [[*group] for group in groups]
    grades = case.get("grades")
    if isinstance(grades, dict) and grades:
        case["grades"] = {**grades, candidate: grades.get(gold, 1)}
    return ""


def _groups(case: Line) -> list[list[str]]:
    if "must_cite_one_of" in case:
        return [_ids(case["must_cite_one_of"])]
    if "expected" in case:
        return [[card] for card in _ids(case["expected"])]
    if _only_graded(case):
        return [_ids(case["grades"])]
    groups = case.get("groups")
    return [_ids(group) for group in groups] if isinstance(groups, list) else []


def _ids(value: JsonValue) -> list[str]:
    """The ids that a list, or the keys of an object, are."""
    return [str(card) for card in value] if isinstance(value, list | dict) else []


def _only_graded(case: Line) -> bool:
    return bool(case.get("grades")) and not any(
        case.get(form) for form in ("must_cite_one_of", "expected", "groups", "evidence")
    )
