"""One run's files: verdict.json, report.md, run.parquet, scores.parquet, run.trec and qrels.trec, and what a flow adds.

Each file is replaced at once; verdict.json is written last, so that a folder which holds one holds the others too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from kbgate.tasks.conclusions import Evaluation
from kbgate.tasks.outcomes import NightlyRow, Result
from kbgate.tasks.records import digest, write_text
from kbgate.tasks.results import Placement, Run
from kbgate.tasks.runs.authentication import authenticated
from kbgate.tasks.runs.columns import cards_table, run_table, scores_table, write_parquet
from kbgate.tasks.runs.document import FILE, VerdictDocument

MANIFEST = "cards.parquet"
"""A run's file: id and hash of every card it saw."""
OTHERS = ("run.parquet", "scores.parquet", MANIFEST, "report.md", "run.trec", "qrels.trec")
"""What every run writes beside its verdict."""
EARLIER = "earlier.parquet"
"""A run's file, where cases were edited: their rankings as they were worded before, by the hash of that wording."""
_TREC_DEPTH = 1000


def summarise(suite: str, result: Result) -> NightlyRow:
    """One suite of a night: its verdict, and the gravest reason or the figure that moved most."""
    if not isinstance(result, Evaluation):
        return NightlyRow(suite, result.name, result.exit_code, result.summary)
    if result.verdict.headline:
        return NightlyRow(suite, result.name, result.exit_code, result.verdict.headline)
    moves = {row.figure: row.delta for row in result.exam.comparison.of(result.exam.run.method) if row.delta is not None}
    figure = max(moves, key=lambda name: abs(moves[name]), default=None)
    worst = f"{figure} {moves[figure]:+.3f}" if figure and moves[figure] else "nothing changed"
    return NightlyRow(suite, result.name, result.exit_code, worst)


def write_run(
    evaluation: Evaluation, document: VerdictDocument, report: str, more: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Write the run's files into its folder; `more`: texts by the name of their file."""
    folder, exam = evaluation.folder, evaluation.exam
    folder.mkdir(parents=True, exist_ok=True)
    write_parquet(run_table(exam.run), folder / "run.parquet")
    if exam.earlier is not None:
        write_parquet(run_table(exam.earlier.run), folder / EARLIER)
    write_parquet(scores_table(exam.scores), folder / "scores.parquet")
    write_parquet(cards_table(exam.kb.cards), folder / MANIFEST)
    for name, text in {"report.md": report, **more}.items():
        write_text(folder / name, text)
    write_text(folder / "run.trec", trec_run(exam.run))
    write_text(folder / "qrels.trec", trec_judgments(exam.scores.placements))
    write_text(folder / FILE, text_of(sealed(document, digests_of(folder))))


def text_of(document: VerdictDocument) -> str:
    """A verdict document as verdict.json holds it."""
    return json.dumps(document.plain(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def digests_of(folder: Path) -> dict[str, str]:
    """sha256 of every file of a run but verdict.json."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != FILE and not path.name.startswith(".")
    }


def sealed(document: VerdictDocument, files: Mapping[str, str]) -> VerdictDocument:
    """A verdict document with the digests of the run's other files, the seal that fits, and an HMAC where there is a key."""
    complete = document.model_copy(update={"files": dict(files)})
    return authenticated(complete.model_copy(update={"seal": seal_of(complete)}))


def seal_of(document: VerdictDocument) -> str:
    """sha256 of a verdict document without its seal and its HMAC."""
    return digest({name: value for name, value in document.plain().items() if name not in ("seal", "hmac")})


def trec_run(run: Run) -> str:
    """The ranking in TREC form. Scores fall strictly with rank: trec_eval reads float32 and breaks ties by descending id."""
    lines = (
        f"{_token(case)} Q0 {_token(card)} {rank} {_TREC_DEPTH + 1 - rank} {run.method}\n"
        for case, hits in sorted(run.lanes.get(run.method, {}).items())
        for rank, card in enumerate(hits.head(_TREC_DEPTH).ids, start=1)
    )
    return "".join(lines)


def trec_judgments(placements: Mapping[str, Placement]) -> str:
    """The judgments in TREC form, only what each asker may see."""
    return "".join(
        f"{_token(case)} 0 {_token(card)} {grade:g}\n"
        for case, placement in placements.items()
        for card, grade in sorted(placement.grades.items())
    )


def _token(name: str) -> str:
    """An id without white space, as TREC files need it; `%` is escaped too, so that it reads back."""
    return re.sub(r"[\s%]", lambda matched: quote(matched.group()), name)
