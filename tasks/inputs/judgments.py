"""Questions and judgments of a folder in BEIR form as the raw records of cases."""

from __future__ import annotations

from pathlib import Path

from kbgate.tasks.errors import InputError, Problem
from kbgate.tasks.records import Record, read_jsonl, read_table, read_text

_QRELS = ("query-id", "corpus-id", "score")


def read_judgments(folder: Path) -> tuple[list[Record], list[Problem], int]:
    """queries.jsonl and qrels as case records: one OR group of the ids judged 1 or more."""
    files = [f for f in (folder / "qrels.tsv", folder / "qrels" / "test.tsv") if f.is_file()]
    if not files:
        raise InputError([Problem("qrels.tsv", 0, f"not found in {folder}, nor qrels/test.tsv")])
    grades: dict[str, dict[str, int]] = {}
    rows, problems = read_table(files[0], delimiter="\t")
    head = read_text(files[0]).partition("\n")[0].split("\t")
    lacking = [name for name in _QRELS if name not in [column.strip() for column in head]]
    if lacking:
        sentence = f"the header line lacks {', '.join(lacking)}; it needs {', '.join(_QRELS)}, separated by tabs"
        raise InputError([Problem(files[0].name, 1, sentence)])
    for row in rows:
        try:
            query, card, grade = (row.content[key] for key in _QRELS)
            if int(grade) >= 1:
                grades.setdefault(query, {})[card] = int(grade)
        except KeyError as error:
            problems.append(Problem(row.file, row.line, f"column {error} is missing or empty"))
        except ValueError:
            problems.append(Problem(row.file, row.line, f"score is a whole number, found '{grade}'"))
    queries, more = read_jsonl(folder / "queries.jsonl")
    problems += [
        Problem(r.file, r.line, "'_id' is missing or no text") for r in queries if not isinstance(r.content.get("_id"), str)
    ]
    queries = [r for r in queries if isinstance(r.content.get("_id"), str)]
    named = {r.content["_id"] for r in queries}
    asked = [r for r in queries if r.content["_id"] in grades]
    problems += [Problem(files[0].name, 0, f"judges the unknown query '{q}'") for q in sorted(grades) if q not in named]
    records = [
        Record(r.file, r.line, {"id": r.content["_id"], "query": r.content.get("text"), "grades": grades[r.content["_id"]]})
        for r in asked
    ]
    return records, problems + more, len(queries) - len(asked)
