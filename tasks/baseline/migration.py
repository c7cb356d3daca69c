"""A baseline of the schema before, rewritten: what its lines did not keep is looked up where their hashes prove it.

A line holds the hash of its case or card. What is found under that hash, in the commit that last changed the baseline or in
the working tree, is what was accepted; nothing is guessed.
"""

from __future__ import annotations

import dataclasses
import io
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import JsonValue, ValidationError

from kbgate.tasks.baseline.files import CARDS, CARDS_PARQUET, CASES, SCHEMA, SUMMARY, replace_files
from kbgate.tasks.baseline.rows import card_row, means
from kbgate.tasks.baseline.wording import asked_of
from kbgate.tasks.domain import Baseline, Card, Case
from kbgate.tasks.errors import BaselineDamaged, InputError, Problem, Unmeasured, counted, named
from kbgate.tasks.git import run_git
from kbgate.tasks.identity import folder_of
from kbgate.tasks.index.fingerprint import LENGTH
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.golden import hash_of, load_golden
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.records import as_json, digest, parse_json, problems_of, read_jsonl, read_text
from kbgate.tasks.schema import BaselineCase, BaselineSummary
from kbgate.tasks.settings import Suite
from kbgate.tasks.unfinished import refuse_pointer

Old = dict[str, JsonValue]
OLD_SCHEMA = 2
Thing = TypeVar("Thing", Case, Card)


@dataclasses.dataclass(frozen=True, slots=True)
class _Known:
    """Cases and cards, by id and by the hash they had in the schema before."""

    cases: Mapping[tuple[str, str], Case]
    cards: Mapping[tuple[str, str], Card]


def migrate(suite: Suite) -> tuple[Baseline, list[str]]:
    """Rewrite the suite's baseline in this schema; returns it, and what the old one did not keep, a sentence each.

    Raises `InputError` where there is nothing to rewrite, or where a line's case or card is found nowhere.
    """
    summary, cases, cards = _read(suite)
    commit = _last_change(suite)
    with _sources(suite, commit) as sources:
        known = [_known(source) for source in sources]
    old_cases = {str(row["id"]): _found(row, [source.cases for source in known]) for row in cases}
    old_cards = {str(row["id"]): _found(row, [source.cards for source in known]) for row in cards}
    _refuse_unknown(suite, commit, old_cases, old_cards)
    card_rows = {name: card_row(card, suite.kb.filterable) for name, card in old_cards.items() if card}
    tiers = {name: (row.tier, row.domain) for name, row in card_rows.items()}
    case_rows = {str(row["id"]): _case(row, case, tiers) for row in cases if (case := old_cases[str(row["id"])])}
    rewritten = _summary(suite, summary, case_rows)
    unknown = ["what auroc was made from: a tolerance on it is judged from the next kbgate baseline update on"]
    if not commit:
        unknown.append("the labels the cases had (topic, cluster, numeric, attack, intent): those of today were taken")
    return replace_files(suite, rewritten, case_rows, card_rows), unknown


def _read(suite: Suite) -> tuple[Old, list[Old], list[Old]]:
    """The three files as the schema before wrote them, proven by their digests."""
    folder = suite.folder
    if not (folder / SUMMARY).exists():
        raise InputError([Problem(SUMMARY, 0, f"not found in {folder}: there is no baseline to rewrite")])
    try:
        summary = parse_json(read_text(folder / SUMMARY))
    except ValueError as error:
        raise _damaged(f"is not valid JSON ({error})") from None
    schema = summary.get("schema") if isinstance(summary, dict) else None
    if schema == SCHEMA:
        raise InputError([Problem(SUMMARY, 0, f"has schema {SCHEMA} already: there is nothing to rewrite")])
    if schema != OLD_SCHEMA:
        raise _damaged(f"has schema {schema!r}; only {OLD_SCHEMA} can be rewritten")
    if summary.get("suite") != suite.name:
        raise _damaged(f"is the baseline of suite '{summary.get('suite')}', and this suite is '{suite.name}'")
    cases = _lines(folder / CASES)
    cards = _columns(folder / CARDS_PARQUET) if (folder / CARDS_PARQUET).exists() else _lines(folder / CARDS)
    digests = {
        "summary": digest({name: value for name, value in summary.items() if name != "digests"}),
        "cases": digest(cases),
        "cards": digest(cards),
    }
    if summary.get("digests") != digests:
        raise _damaged(f"and the lines of {CASES} and {CARDS} disagree: one was edited, added or removed by hand")
    return summary, cases, cards


def _damaged(sentence: str) -> BaselineDamaged:
    return BaselineDamaged([Problem(SUMMARY, 0, f"{sentence}; restore the files with git, or accept anew")])


def _lines(path: Path) -> list[Old]:
    records, problems = read_jsonl(path)
    if problems:
        raise BaselineDamaged(problems)
    return _sorted([record.content for record in records])


def _columns(path: Path) -> list[Old]:
    refuse_pointer(path)
    try:
        return _sorted(pq.read_table(path).to_pylist())
    except (OSError, pa.ArrowException) as error:
        raise BaselineDamaged([Problem(path.name, 0, f"cannot be read ({error})")]) from None


def _sorted(rows: list[Old]) -> list[Old]:
    return sorted(rows, key=lambda row: str(row.get("id")))


def _last_change(suite: Suite) -> str:
    """The commit that last changed the baseline; "" where git knows none, or the files were changed since."""
    try:
        clean = run_git(suite.folder, "status", "--porcelain", "--", SUMMARY, CASES)
        last = run_git(suite.folder, "log", "-1", "--format=%H", "--", SUMMARY)
    except Unmeasured:
        return ""
    known = clean.returncode == 0 and not clean.stdout.strip() and last.returncode == 0
    return last.stdout.decode(errors="replace").strip() if known else ""


class _sources:
    """The suite at a commit, where there is one, and as it stands; a folder of its own is removed at the end."""

    def __init__(self, suite: Suite, commit: str):
        self._suite, self._commit = suite, commit
        self._folder = tempfile.TemporaryDirectory(prefix="kbgate-")

    def __enter__(self) -> list[Suite]:
        then = _checked_out(self._suite, self._commit, Path(self._folder.name)) if self._commit else None
        return [source for source in (then, self._suite) if source]

    def __exit__(self, *ended: object) -> None:
        self._folder.cleanup()


def _checked_out(suite: Suite, commit: str, folder: Path) -> Suite | None:
    """The suite as it stood at a commit, with its cards where these are in the repository; None where it cannot be read."""
    root = Path(run_git(suite.folder, "rev-parse", "--show-toplevel").stdout.decode(errors="replace").strip())
    here = suite.folder.resolve().relative_to(root.resolve())
    cards = (suite.folder / suite.kb.path).resolve()
    wanted = [here, *([cards.relative_to(root.resolve())] if cards.is_relative_to(root.resolve()) else [])]
    archive = run_git(root, "archive", "--format=tar", commit, "--", *(path.as_posix() for path in wanted))
    if archive.returncode != 0:  # the cards were elsewhere then
        archive = run_git(root, "archive", "--format=tar", commit, "--", here.as_posix())
    if archive.returncode != 0:
        return None
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, [member for member in tar if member.isfile()], filter="data")
    try:
        then = load_suite(folder / here)
    except InputError:
        return None
    return then if cards.is_relative_to(root.resolve()) else then.model_copy(update={"kb": suite.kb.model_copy(
        update={"path": str(cards)})})  # fmt: skip


def _known(suite: Suite) -> _Known:
    """What a suite's files hold; nothing where they cannot be read."""
    try:
        cards = load_cards(suite).cards
    except InputError:
        cards = {}
    cases = load_golden(suite).cases
    # The hash of the schema before did not cover the evidence.
    old = {(name, hash_of(dataclasses.replace(case, evidence=()))): case for name, case in cases.items()}
    return _Known(old, {(name, card.hash): card for name, card in cards.items()})


def _found(row: Old, sources: list[Mapping[tuple[str, str], Thing]]) -> Thing | None:
    key = (str(row["id"]), str(row.get("hash")))
    return next((source[key] for source in sources if key in source), None)


def _refuse_unknown(suite: Suite, commit: str, cases: Mapping[str, Case | None], cards: Mapping[str, Card | None]) -> None:
    where = f"neither in commit {commit[:12]}, which last changed the baseline, nor here" if commit else "here"
    anew = f'or accept anew: move baseline.* away and type kbgate baseline update {suite.given} --reason "..."'
    problems = [
        Problem(file, 0, f"{counted(len(lost), noun)} of the baseline cannot be known: what {named(lost)} was when it was "
                f"accepted is found {where if commit else 'nowhere here'}; bring it back and type this again, {anew}")
        for file, noun, found in ((CASES, "case", cases), (CARDS, "card", cards))
        if (lost := sorted(name for name, content in found.items() if content is None))
    ]  # fmt: skip
    if problems:
        raise InputError(problems)


def _case(row: Old, case: Case, cards: Mapping[str, tuple[str, str]]) -> BaselineCase:
    golds = [cards[card] for card in case.grades if card in cards]
    anchor = row.pop("anchor", None)
    content: Old = {
        **row,
        "hash": case.hash,
        "asked": asked_of(case).plain(),
        "topic": case.topic,
        "attack": case.attack,
        "intent": case.intent,
        "numeric": case.numeric,
        "domains": as_json(sorted({domain for _, domain in golds} - {""})),
        "tiers": as_json(sorted({tier for tier, _ in golds} - {""})),
    }
    if isinstance(anchor, dict):
        content["anchor"] = {"hash": case.hash, "scores": anchor}
    try:
        return BaselineCase.of(content)
    except ValidationError as error:
        raise BaselineDamaged(problems_of(error, CASES, 0, BaselineCase)) from None


def _summary(suite: Suite, summary: Old, cases: Mapping[str, BaselineCase]) -> BaselineSummary:
    # The same files give the same lineage wherever they are rewritten: two branches that do agree.
    lineage, prints = digest(summary["digests"], 32), summary["fingerprints"]
    golden = digest(sorted((row.id, row.hash) for row in cases.values()), LENGTH)
    content: Old = {
        **summary,
        "schema": SCHEMA,
        "lineage": lineage,
        "folder": folder_of(suite.folder),
        "aggregates": {},
        "fingerprints": {**prints, "golden": golden} if isinstance(prints, dict) else prints,
    }
    try:
        rewritten = BaselineSummary.of(content)
    except ValidationError as error:
        raise BaselineDamaged(problems_of(error, SUMMARY, 0, BaselineSummary)) from None
    if rewritten.means != means(cases):
        raise _damaged(f"holds means that are not those of {CASES}")
    return rewritten
