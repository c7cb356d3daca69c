"""The accepted scores of a suite: three files, reviewed like code, written all at once or not at all.

baseline.json holds means, fingerprints and digests of the other two, baseline.cases.jsonl a line per case,
baseline.cards.jsonl a line per card (Parquet above 20,000 cards). Files that disagree with each other are refused: a row
removed by hand must never read as a case that was never there.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import JsonValue, ValidationError

from kbgate.tasks.baseline.anchor import anchored_by, carried_over, refuse_creep, refuse_second_beginning
from kbgate.tasks.baseline.commit import COMMIT, Write, finish, refuse_interrupted, replace_together
from kbgate.tasks.baseline.rows import (
    CardRows,
    CaseRows,
    acceptance,
    card_of_columns,
    card_rows,
    case_rows,
    columns_of,
    lane_means,
    means,
    stored_versions,
)
from kbgate.tasks.comparison.aggregates import aggregates, of_today
from kbgate.tasks.conclusions import Code, Evaluation, Level, VerdictName
from kbgate.tasks.domain import Baseline, Mode
from kbgate.tasks.errors import BaselineDamaged, BaselineOlder, InputError, Problem, Refused, Unmeasured
from kbgate.tasks.gate.gold_texts import NAME as GOLD_TEXT
from kbgate.tasks.gate.gold_texts import offer
from kbgate.tasks.gate.rules import NAME as UNMET_RULES
from kbgate.tasks.identity import folder_of, new_lineage
from kbgate.tasks.records import canonical, digest, parse_json, problems_of, read_jsonl, read_text, write_text
from kbgate.tasks.schema import AcceptedFingerprints, Anchor, BaselineCard, BaselineCase, BaselineSummary, Digests, Means
from kbgate.tasks.settings import Suite
from kbgate.tasks.unfinished import refuse_pointer

SCHEMA = 3
_MIGRATED = 2
"""The schema that `migration` rewrites."""
SUMMARY, CASES, CARDS, CARDS_PARQUET = (
    "baseline.json", "baseline.cases.jsonl", "baseline.cards.jsonl", "baseline.cards.parquet",
)  # fmt: skip
FILES = (SUMMARY, CASES, CARDS, CARDS_PARQUET)
PARQUET_ABOVE = 20_000
_RIVALS = {CARDS: CARDS_PARQUET, CARDS_PARQUET: CARDS}
"""The cards stand in one file or the other: by the new one, the one that goes."""

_GOLD_LOST = ("vanished_gold", GOLD_TEXT, UNMET_RULES)
"""Checks whose loss is no baseline: whoever accepts it accepts a question without an answer."""

Row = TypeVar("Row", BaselineCase, BaselineCard)


def read_baseline(suite: Suite) -> Baseline | None:
    """The committed baseline, None where there is none; raises `BaselineDamaged` where it cannot be trusted."""
    folder = suite.folder
    refuse_interrupted(folder, suite.given)
    present = [name for name in FILES if (folder / name).exists()]
    if not present:
        return None
    try:
        if SUMMARY not in present or CASES not in present or len(present) != 3:
            raise _damaged(present[0], f"stands without its fellows (found {', '.join(present)})")
        summary = _read_summary(folder)
        cases = _read_rows(folder / CASES, BaselineCase)
        baseline = Baseline(summary, cases, _read_cards(folder, present), "")
        digests = _agree(baseline)
        if summary.suite != suite.name:
            raise _damaged(SUMMARY, f"is the baseline of suite '{summary.suite}', and this suite is '{suite.name}'")
    except BaselineOlder:
        given = shlex.quote(suite.given or str(folder))
        sentence = f"is of an older kbgate; rewrite it, once, with: kbgate baseline migrate {given}"
        raise BaselineOlder([Problem(SUMMARY, 0, sentence)]) from None
    except InputError as error:
        where = shlex.quote(suite.given or str(folder))
        restore = f"restore the files with: git checkout -- {where}/baseline.*"
        anew = f'or move them away and accept anew with: kbgate baseline update {where} --reason "..."'
        raise BaselineDamaged([*error.problems, Problem(SUMMARY, 0, f"{restore}; {anew}")]) from None
    return dataclasses.replace(baseline, fingerprint=digest([summary.plain(), digests.plain()], 16))


def _damaged(file: str, sentence: str, line: int = 0) -> BaselineDamaged:
    return BaselineDamaged([Problem(file, line, sentence)])


def _read_summary(folder: Path) -> BaselineSummary:
    try:
        summary = parse_json(read_text(folder / SUMMARY))
        schema = summary.get("schema") if isinstance(summary, dict) else None
        if schema == _MIGRATED:
            raise BaselineOlder([])
        if schema != SCHEMA:
            newer = isinstance(schema, int) and schema > SCHEMA
            next_step = "upgrade kbgate" if newer else "it is of an older kbgate, or damaged"
            raise _damaged(SUMMARY, f"has schema {schema!r}; this kbgate reads {SCHEMA}: {next_step}")
        return BaselineSummary.of(summary)
    except ValidationError as error:
        raise BaselineDamaged(problems_of(error, SUMMARY, 0, BaselineSummary)) from None
    except ValueError as error:
        raise _damaged(SUMMARY, f"is not valid JSON ({error})") from None


def _read_rows(path: Path, model: type[Row]) -> dict[str, Row]:
    records, problems = read_jsonl(path)
    rows: dict[str, Row] = {}
    for record in records:
        try:
            row = model.of(record.content)
        except ValidationError as error:
            problems += problems_of(error, path.name, record.line, model)
            continue
        if row.id in rows:
            problems.append(Problem(path.name, record.line, f"id '{row.id}' is there twice"))
        rows[row.id] = row
    if problems:
        raise BaselineDamaged(problems)
    return rows


def _read_cards(folder: Path, present: list[str]) -> dict[str, BaselineCard]:
    if CARDS in present:
        return _read_rows(folder / CARDS, BaselineCard)
    refuse_pointer(folder / CARDS_PARQUET)
    try:
        rows = [card_of_columns(row) for row in pq.read_table(folder / CARDS_PARQUET).to_pylist()]
    except ValidationError as error:
        raise BaselineDamaged(problems_of(error, CARDS_PARQUET, 0, BaselineCard)) from None
    except (OSError, pa.ArrowException) as error:
        raise _damaged(CARDS_PARQUET, f"cannot be read ({error})") from None
    return {row.id: row for row in rows}


def _digests(summary: Mapping[str, JsonValue], cases: CaseRows, cards: CardRows) -> Digests:
    """Over content, not bytes: line ends and the order of lines and keys may change on the way through git."""
    return Digests(
        summary=digest({name: value for name, value in summary.items() if name != "digests"}),
        cases=digest([cases[case].plain() for case in sorted(cases)]),
        cards=digest([cards[card].plain() for card in sorted(cards)]),
    )


def _agree(baseline: Baseline) -> Digests:
    """The three files say the same, and what they say is what was written: their digests."""
    summary = baseline.summary
    digests = _digests(summary.plain(), baseline.cases, baseline.cards)
    if summary.digests != digests:
        raise _damaged(SUMMARY, f"and the lines of {CASES} and {CARDS} disagree: one was edited, added or removed by hand")
    told, made = (of_today(summary, figures) for figures in (summary.aggregates, aggregates(baseline.cases)))
    if summary.means != means(baseline.cases) or told != made:
        raise _damaged(SUMMARY, f"holds means that are not those of {CASES}")
    return digests


def refuse_incomplete(evaluation: Evaluation, what: str) -> None:
    """Raise where a run is not full and complete: `what` it would give is then not known. `Unmeasured` for an ERROR."""
    if evaluation.exam.run.mode != Mode.FULL:
        raise Refused(f"{what} comes from a full run, never from the fast subset")
    if evaluation.verdict.name == VerdictName.ERROR:
        raise Unmeasured(f"there is nothing to accept: {evaluation.verdict.reasons[0].sentence}")
    for reason in evaluation.verdict.reasons:
        if reason.check in ("completeness", "finite"):
            raise Refused(f"the run is not complete: {reason.sentence}")


def may_be_accepted(evaluation: Evaluation, accept_regression: bool, anchor: bool = False) -> None:
    """Raise `Refused` unless the run may become the baseline: full, complete, and green or knowingly accepted.

    A run that could not be compared is not known to be no regression, so it is accepted knowingly or not at all; only where
    there is no baseline yet is there nothing to regress from.
    """
    refuse_incomplete(evaluation, "a baseline")
    verdict = evaluation.verdict
    for reason in verdict.reasons:
        if reason.check in _GOLD_LOST and reason.level == Level.CRITICAL:
            raise Refused(
                f"{reason.sentence}; put it back, give these cases another gold or rule, or remove them, and then accept"
            )
        if reason.level == Level.INCONCLUSIVE and reason.code not in (Code.NO_BASELINE, Code.INCOMPARABLE):
            raise Refused(f"the run is inconclusive: {reason.sentence}")
    against = [r for r in verdict.reasons if r.level == Level.CRITICAL or r.code == Code.INCOMPARABLE]
    if against and not accept_regression:
        sentence = against[0].sentence
        how = offer(evaluation.exam, "; fix it, or accept it knowingly with --accept-regression")
        raise Refused(f"the run is {verdict.name} ({sentence}){how}")
    if evaluation.exam.baseline is None and not (anchor and accept_regression):
        refuse_second_beginning(evaluation.exam.suite, SUMMARY)
    refuse_creep(evaluation, anchor, accept_regression)


def write_baseline(evaluation: Evaluation, reason: str, accept_regression: bool, anchor: bool = False) -> Baseline:
    """Accept a run as the suite's baseline; all three files are replaced, or none.

    `anchor`: what later baselines are held against together; the first baseline is one by itself.
    """
    if not reason.strip():
        raise Refused("a baseline needs a reason; it stays in the file for whoever reviews it")
    may_be_accepted(evaluation, accept_regression, anchor)
    exam, fingerprints = evaluation.exam, evaluation.fingerprints
    cases = case_rows(evaluation, anchor or exam.baseline is None, accept_regression)
    cards = card_rows(exam.kb.cards, exam.suite.kb.filterable)
    summary = BaselineSummary(
        schema=SCHEMA,
        suite=exam.suite.name,
        lineage=(exam.baseline.summary.lineage if exam.baseline else "") or new_lineage(),
        folder=folder_of(exam.suite.folder),
        accepted=acceptance(evaluation, reason, accept_regression),
        top_k=exam.suite.top_k,
        unit=exam.suite.unit,
        method=exam.run.method,
        metric_versions=stored_versions(),
        means=means(cases),
        aggregates=aggregates(cases),
        lanes=lane_means(exam.scores, exam.run.method),
        counts=evaluation.counts,
        fingerprints=AcceptedFingerprints(index=fingerprints.index, golden=fingerprints.golden, policy=fingerprints.policy),
        provenance=evaluation.provenance,
        digests=Digests(summary="", cases="", cards=""),
        anchor=_anchor(evaluation, reason, anchor, aggregates(cases)),
    )
    return replace_files(exam.suite, summary, cases, cards)


def replace_files(suite: Suite, summary: BaselineSummary, cases: CaseRows, cards: CardRows) -> Baseline:
    """Write all three files, with the digests that fit them, or none; returns them as they are read."""
    summary = summary.model_copy(update={"digests": _digests(summary.plain(), cases, cards)})
    refuse_interrupted(suite.folder, suite.given)
    files = {name: _writer(content) for name, content in _files(summary, cases, cards).items()}
    replace_together(suite.folder, files, _RIVALS)
    accepted = read_baseline(suite)
    assert accepted is not None, "the files were just written"
    return accepted


def _anchor(evaluation: Evaluation, reason: str, anchor: bool, aggregates: Means) -> Anchor:
    """This run where it is the anchor; otherwise the one there was, with its cases that are asked no more."""
    baseline = evaluation.exam.baseline
    if anchor or baseline is None:
        return anchored_by(evaluation, reason, aggregates)
    _, removed = carried_over(baseline, evaluation.exam.golden)
    kept = of_today(baseline.summary, baseline.summary.anchor.aggregates)
    return baseline.summary.anchor.model_copy(update={"removed": removed, "aggregates": kept})


def _files(summary: BaselineSummary, cases: CaseRows, cards: CardRows) -> dict[str, str | CardRows]:
    files: dict[str, str | CardRows] = {
        SUMMARY: json.dumps(summary.plain(), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
        CASES: "".join(canonical(cases[case].plain()) + "\n" for case in sorted(cases)),
    }
    if len(cards) > PARQUET_ABOVE:
        return {**files, CARDS_PARQUET: cards}
    return {**files, CARDS: "".join(canonical(cards[card].plain()) + "\n" for card in sorted(cards))}


def _writer(content: str | CardRows) -> Write:
    """What writes a file's content at a path."""
    if isinstance(content, str):
        return lambda path: write_text(path, content)
    return lambda path: pq.write_table(pa.Table.from_pylist([columns_of(content[card]) for card in sorted(content)]), path)


def finish_update(suite: Suite) -> Baseline | None:
    """Finish an update that was interrupted after its commit point; None where there is none to finish.

    What would stand afterwards must be one baseline that agrees with itself; nothing is moved before that is proven.
    """

    def prove(trial: Path) -> None:
        if read_baseline(suite.model_copy(update={"folder": trial})) is None:
            raise InputError([Problem(COMMIT, 0, "is empty, and there is no baseline beside it")])

    return read_baseline(suite) if finish(suite.folder, FILES, _RIVALS, prove) else None
