"""The golden set, read from golden.jsonl or BEIR judgments, checked against the knowledge base, and its fast subset."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from kbgate.tasks.domain import Baseline, GoldenSet, KnowledgeBase, Vanished
from kbgate.tasks.errors import InputError, Problem, did_you_mean
from kbgate.tasks.predicates import BUILT_IN_FIELDS, mistakes
from kbgate.tasks.records import Record, digest, nfc, one_line, problems_of, read_jsonl, read_table, read_text
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import CASE_COLUMNS, rows_of

FILE = "golden.jsonl"
_QRELS = ("query-id", "corpus-id", "score")
_FORMS = ("must_cite_one_of", "expected", "groups", "evidence")


class Evidence(BaseModel):
    """Gold as a span of a card's text: verbatim, or by character offsets (end exclusive)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    card: str
    text: Annotated[str, Field(min_length=1)] | None = None
    start: int | None = None
    end: int | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Evidence:
        if [self.text is not None, self.start is not None, self.end is not None] not in (
            [True, False, False],
            [False, True, True],
        ):
            raise ValueError("give either text, or start and end")
        return self


class CaseRow(BaseModel):
    """One case as it may stand in a file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = Field(min_length=1, max_length=400)
    query: str
    kind: Literal["golden", "adversarial", "no_match"] = "golden"
    language: str = ""
    must_cite_one_of: list[str] = []
    expected: list[str] = []
    groups: list[list[str]] = []
    evidence: list[Evidence] = []
    grades: dict[str, Annotated[int, Field(ge=1, le=1000)]] = {}
    filter: dict[str, Any] | None = None
    entitled: dict[str, Any] | None = None
    canary: bool = False
    cluster: str = ""
    split: Literal["dev", "release", ""] = ""
    numeric: bool = False
    attack: Literal["counterfactual", "distractor", "negation", "out_of_scope", ""] = ""
    topic: str = ""
    intent: str = ""
    notes: str = ""
    right_filter: dict[str, Any] | None = None

    @field_validator("id")
    @classmethod
    def _id_is_one_line(cls, value: str) -> str:
        return one_line(value)

    @field_validator("query")
    @classmethod
    def _query_says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty")
        return value

    @model_validator(mode="after")
    def _gold_has_one_form(self) -> CaseRow:
        forms = [name for name in _FORMS if getattr(self, name)]
        if len(forms) > 1:
            raise ValueError(f"the gold stands in {len(forms)} forms ({', '.join(forms)}); keep one")
        if any(not group for group in self.groups):
            raise ValueError("an empty group can never be satisfied")
        has_gold = bool(forms or self.grades)
        if self.kind == "no_match" and has_gold:
            raise ValueError("a no_match case has no gold")
        if self.canary and not has_gold:
            raise ValueError("a canary without gold could never fail: it watches nothing")
        if self.kind == "golden" and not has_gold:
            raise ValueError("no gold; give must_cite_one_of, expected, groups or evidence, or say kind = no_match")
        ungraded = sorted({card for group in self.gold_groups() for card in group} - self.grades.keys())
        if self.grades and ungraded:
            raise ValueError(f"grades are given, but none for gold '{ungraded[0]}'")
        return self

    def gold_groups(self) -> tuple[tuple[str, ...], ...]:
        """The gold in its general form: AND between groups, OR inside one."""
        if self.must_cite_one_of:
            groups = [self.must_cite_one_of]
        elif self.expected:
            groups = [[card] for card in self.expected]
        elif self.evidence:
            groups = [[span.card] for span in self.evidence]
        else:
            groups = self.groups or ([list(self.grades)] if self.grades else [])
        unique = {tuple(sorted({nfc(card) for card in group})) for group in groups}
        return tuple(sorted(unique))


def load_golden(suite: Suite) -> GoldenSet:
    """Read every case; what is wrong stands in `problems`, one sentence each."""
    kb = (suite.folder / suite.kb.path).resolve()
    beir = kb if kb.is_dir() else kb.parent
    try:
        if (suite.folder / FILE).exists() or not (beir / "queries.jsonl").is_file():
            records, problems = read_jsonl(suite.folder / FILE)
            unjudged = 0
        else:
            records, problems, unjudged = _read_beir(beir)
    except InputError as error:
        return GoldenSet(pd.DataFrame(columns=list(CASE_COLUMNS)), tuple(error.problems))
    rows: list[dict[str, Any]] = []
    first: dict[str, Record] = {}
    for record in records:
        try:
            row = CaseRow.model_validate(record.content)
        except ValidationError as error:
            problems += problems_of(error, record.file, record.line, CaseRow)
            continue
        if row.id in first:
            there = first[row.id]
            problems.append(Problem(record.file, record.line, f"id '{row.id}' is taken by {there.file}:{there.line}"))
            continue
        first[row.id] = record
        rows.append(_case(row, record))
    if not rows and not problems:
        problems.append(Problem(FILE, 0, "holds no case: an empty exam passes nobody"))
    cases = pd.DataFrame(rows, columns=list(CASE_COLUMNS), dtype=object)
    return GoldenSet(cases.sort_values("id", ignore_index=True), tuple(problems), unjudged)


def _case(row: CaseRow, record: Record) -> dict[str, Any]:
    groups = row.gold_groups()
    grades = {nfc(card): grade for card, grade in row.grades.items()}
    grades = grades or {card: 1 for group in groups for card in group}
    plain: dict[str, Any] = {name: getattr(row, name) for name in CaseRow.model_fields if name in CASE_COLUMNS}
    compared = ("query", "filter", "entitled", "kind", "language", "canary")
    labelled = {} if row.right_filter is None else {"right_filter": row.right_filter}
    return {
        **plain,
        "groups": groups,
        "grades": grades,
        "cluster": row.cluster or row.id,
        "evidence": tuple(span.model_dump(exclude_none=True) for span in row.evidence),
        "hash": digest({**{name: plain[name] for name in compared}, **labelled, "groups": groups, "grades": grades}, 16),
        "file": record.file,
        "line": record.line,
    }


def _read_beir(folder: Path) -> tuple[list[Record], list[Problem], int]:
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


def check_inputs(
    suite: Suite, kb: KnowledgeBase, golden: GoldenSet, baseline: Baseline | None, strict: bool = False
) -> tuple[Vanished, ...]:
    """Hold cases against cards: unknown golds, excerpts that are not there, predicates on unknown fields.

    Gold the baseline's manifest knows, and the knowledge base has lost since, is returned: the run goes on and will block.
    With `strict`, as in `kbgate check`, it is a mistake too. Raises `InputError` with every mistake of cards and cases.
    """
    texts = dict(zip(kb.cards["id"], kb.cards["text"], strict=True))
    hashes = dict(zip(kb.cards["id"], kb.cards["hash"], strict=True))
    changed = {card for card, row in (baseline.cards if baseline else {}).items() if hashes.get(card) != row["hash"]}
    known_cases = baseline.cases if baseline else {}
    rejected = kb.problems if suite.kb.on_bad_card == "refuse" else ()
    problems, vanished = [*rejected, *golden.problems], []
    fields = [*BUILT_IN_FIELDS, *suite.kb.filterable]
    # Cards that were not read cannot be told from cards that are not there: their own problem is the one to mend first.
    if kb.cards.empty:
        raise InputError([*kb.problems, *golden.problems])
    for case in rows_of(golden.cases):
        sentences = list(_predicate_mistakes(case, fields))
        for lost, sentence in _missing_gold(case, texts):
            # A case the baseline does not know was labelled since: what it misses was never there.
            if lost.card in changed and (case["id"] in known_cases or not lost.excerpt) and not strict:
                vanished.append(lost)
            else:
                sentences.append(sentence)
        problems += [Problem(case["file"], case["line"], sentence) for sentence in sentences]
    known = {*golden.cases["id"], *known_cases}
    problems += [
        Problem("suite.toml", 0, f"allow.{number}.case: unknown case '{allow.case}'; {did_you_mean(allow.case, known)}")
        for number, allow in enumerate(suite.allowances)
        if allow.case not in known
    ]
    if problems:
        raise InputError(problems)
    return tuple(vanished)


def _predicate_mistakes(case: Mapping[str, Any], fields: Collection[str]) -> Iterator[str]:
    for name in ("filter", "entitled", "right_filter"):
        if case[name] is not None:
            for sentence in mistakes(case[name], fields, access=name == "entitled"):
                yield f"{name}: {sentence}"


def _missing_gold(case: Mapping[str, Any], texts: Mapping[str, str]) -> Iterator[tuple[Vanished, str]]:
    """Gold that is not in the knowledge base as it is, and the sentence for whoever wrote the label."""
    for card in sorted(case["grades"]):
        if card not in texts:
            sentence = f"gold '{card}' of case '{case['id']}' is no card of the knowledge base; {did_you_mean(card, texts)}"
            yield Vanished(case["id"], card), sentence
    for span in case["evidence"]:
        card = nfc(span["card"])
        if (text := texts.get(card)) is None:
            continue
        if "text" in span and nfc(span["text"]) not in nfc(text):
            sentence = f"evidence '{span['text'][:40]}' of case '{case['id']}' does not stand in card '{card}'"
            yield Vanished(case["id"], card, span["text"]), sentence
        if "start" in span and not 0 <= span["start"] < span["end"] <= len(text):
            place = f"{span['start']} to {span['end']}"
            sentence = f"evidence {place} of case '{case['id']}' is outside card '{card}' ({len(text)} characters)"
            yield Vanished(case["id"], card, place), sentence


def select_fast(cases: pd.DataFrame, places: int) -> pd.DataFrame:
    """The pull-request subset: stratified by kind and language (and topic while strata stay few), canaries always in.

    Who is chosen depends on case ids alone, so it does not move when other cases are edited. Places are shared out in
    proportion, the largest remainders first, and every stratum has at least one while places last.
    """
    canary = cases["canary"].astype(bool)
    rest = cases[~canary]
    places = max(places - int(canary.sum()), 0)
    if len(rest) <= places:
        return cases
    by = ["kind", "language", "topic"]
    if rest[by].drop_duplicates().shape[0] >= places / 2:
        by = by[:2]
    strata = [tuple(key) for key in rest[by].to_numpy().tolist()]
    order = sorted(range(len(rest)), key=lambda i: hashlib.sha256(rest["id"].iloc[i].encode()).digest())
    sizes = Counter(strata)
    quota = {s: places * n / len(rest) for s, n in sizes.items()}
    given = {s: max(1, int(q)) for s, q in quota.items()}
    ranked = sorted(sizes, key=lambda s: (given[s] - quota[s], s))
    while sum(given.values()) < places:
        stratum = next(s for s in ranked if given[s] < sizes[s])
        given[stratum] += 1
        ranked.sort(key=lambda s: (given[s] - quota[s], s))
    while sum(given.values()) > places:
        stratum = max(given, key=lambda s: (given[s] - quota[s], given[s], s))
        given[stratum] -= 1
    chosen: list[int] = []
    for i in order:
        if given[strata[i]] > 0:
            given[strata[i]] -= 1
            chosen.append(i)
    return cases[canary | cases["id"].isin(set(rest["id"].iloc[chosen]))].reset_index(drop=True)
