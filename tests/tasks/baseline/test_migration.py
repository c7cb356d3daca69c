"""A baseline of the schema before is rewritten from what git and the files prove, and from nothing else."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.baseline.files import read_baseline
from kbgate.tasks.baseline.migration import migrate
from kbgate.tasks.comparison.wordings import case_of
from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.errors import BaselineDamaged, BaselineOlder, InputError
from kbgate.tasks.inputs.golden import hash_of, load_golden
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.records import digest
from tests.conftest import edit_lines, read_lines, write_lines
from tests.exams import Desk, filler

HIT = filler("c0")
ANSWERS = dict.fromkeys("abc", HIT)
CASE_KEYS = (
    "id", "hash", "cluster", "canary", "tier_gold", "outcome", "scores", "gold_ranks", "top", "kth", "anchor",
)  # fmt: skip


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def age(folder: Path) -> None:
    """Turn a baseline into what the schema before would have written of the same run."""
    cases, cards = read_lines(folder / "baseline.cases.jsonl"), read_lines(folder / "baseline.cards.jsonl")
    golden = load_golden(load_suite(folder)).cases
    old_cases = []
    for row in cases:
        asked = {name: value for name, value in row["asked"].items() if name != "evidence"}
        anchor = row["anchor"]["scores"] if row.get("anchor") else None
        old = {**{name: row[name] for name in CASE_KEYS if name in row}, "anchor": anchor}
        case = golden[row["id"]]
        content = {name: getattr(case, name) for name in ("query", "filter", "entitled", "kind", "language", "canary")}
        old["hash"] = digest({**content, "groups": asked["groups"], "grades": asked["grades"]}, 16)
        old_cases.append(old)
    old_cards = [
        {**{"tier": "", "domain": ""}, **{k: row[k] for k in ("id", "hash", "tier", "domain") if k in row}} for row in cards
    ]
    summary: dict[str, Any] = json.loads((folder / "baseline.json").read_text())
    for key in ("lineage", "folder", "aggregates", "digests"):
        del summary[key]
    summary["schema"], summary["metric_versions"] = 2, {k: v for k, v in summary["metric_versions"].items() if k != "auroc"}
    summary["anchor"].pop("aggregates", None)
    summary["digests"] = {"summary": digest(summary), "cases": digest(old_cases), "cards": digest(old_cards)}
    (folder / "baseline.json").write_text(json.dumps(summary))
    write_lines(folder / "baseline.cases.jsonl", old_cases)
    write_lines(folder / "baseline.cards.jsonl", old_cards)


@pytest.fixture
def aged(desk: Desk) -> Desk:
    """A desk with a committed baseline of the schema before: a case with an excerpt, one with labels, one plain."""
    desk.cards[0] |= {"text": "take it with water", "tier": "gold", "domain": "routine"}
    desk.case("a", groups=[], evidence=[{"card": "c0", "text": "with water"}])
    desk.cases[-1].pop("must_cite_one_of")
    desk.case("b", topic="water", cluster="w", numeric=True)
    desk.case("c")
    desk.accept(ANSWERS)
    age(desk.folder)
    git(desk.folder, "init", "-q")
    git(desk.folder, "add", ".")
    git(desk.folder, "commit", "-qm", "first")
    return desk


def test_the_schema_before_is_refused_with_the_command(aged: Desk) -> None:
    with pytest.raises(BaselineOlder, match="rewrite it, once, with: kbgate baseline migrate"):
        aged.exam(ANSWERS)


def test_it_is_rewritten_and_judges_as_before(aged: Desk) -> None:
    suite = load_suite(aged.folder)
    baseline, unknown = migrate(suite)
    assert baseline == read_baseline(suite)
    assert [sentence for sentence in unknown if "auroc" in sentence] == unknown
    golden = load_golden(suite).cases
    assert {name: row.hash for name, row in baseline.cases.items()} == {name: case.hash for name, case in golden.items()}
    again = {row.id: dataclasses.replace(case_of(row.hash, row.asked), canary=row.canary) for row in baseline.cases.values()}
    assert all(hash_of(again[row.id]) == row.hash for row in baseline.cases.values())
    row = baseline.cases["b"]
    assert (row.topic, row.cluster, row.numeric, row.tiers, row.domains) == ("water", "w", True, ["gold"], ["routine"])
    assert row.anchor is not None
    assert row.anchor.scores == {"contract@3": 1.0}
    assert (baseline.cards["c0"].length, baseline.cards["c0"].text) == (18, digest("take it with water", 16))
    assert aged.judge(ANSWERS).name == VerdictName.PASS
    assert aged.judge({**ANSWERS, "c": filler("c1", "c2", "c3", "c4")}).name == VerdictName.BLOCK
    with pytest.raises(InputError, match="there is nothing to rewrite"):
        migrate(suite)


def test_what_changed_since_the_commit_is_seen_as_a_change(aged: Desk) -> None:
    """Cards and cases are those of the commit: what was edited since must not become what was accepted."""
    edit_lines(aged.folder / "golden.jsonl", lambda row: {**row, "topic": "other"})
    edit_lines(aged.folder / "cards.jsonl", lambda row: {**row, "text": row["text"] + " or milk"} if row["id"] == "c0" else row)
    baseline, _ = migrate(load_suite(aged.folder))
    assert baseline.cases["b"].topic == "water"
    assert baseline.cards["c0"].length == 18


def lose_a_case(folder: Path) -> None:
    edit_lines(folder / "golden.jsonl", lambda row: row if row["id"] != "c" else None)


def lose_a_card(folder: Path) -> None:
    edit_lines(folder / "cards.jsonl", lambda row: row if row["id"] != "c9" else None)


@pytest.mark.parametrize(("lose", "sentence"), [(lose_a_case, "1 case of the baseline.*c"), (lose_a_card, "1 card of.*c9")])
def test_what_nothing_proves_is_told_and_nothing_written(lose: Callable[[Path], None], sentence: str, aged: Desk) -> None:
    lose(aged.folder)
    git(aged.folder, "add", ".")
    git(aged.folder, "commit", "--amend", "-qm", "first, without it")
    before = {file.name: file.read_bytes() for file in aged.folder.glob("baseline*")}
    with pytest.raises(InputError, match=sentence):
        migrate(load_suite(aged.folder))
    assert {file.name: file.read_bytes() for file in aged.folder.glob("baseline*")} == before


def test_outside_of_git_the_files_that_are_there_prove_it(aged: Desk, tmp_path: Path) -> None:
    outside = aged.copy(tmp_path / "outside")
    shutil.rmtree(outside.folder / ".git")
    baseline, unknown = migrate(load_suite(outside.folder))
    assert set(baseline.cases) == {"a", "b", "c"}
    assert any("those of today were taken" in sentence for sentence in unknown)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: edit_lines(folder / "baseline.cases.jsonl", lambda row: {**row, "outcome": "raised"}),
        lambda folder: edit_lines(folder / "baseline.cards.jsonl", lambda row: row if row["id"] != "c1" else None),
        lambda folder: (folder / "baseline.json").write_text("[]"),
    ],
)
def test_an_edited_baseline_is_not_rewritten(damage: Callable[[Path], None], aged: Desk) -> None:
    damage(aged.folder)
    with pytest.raises(BaselineDamaged):
        migrate(load_suite(aged.folder))


def test_the_baseline_of_another_suite_is_refused(aged: Desk) -> None:
    text = (aged.folder / "suite.toml").read_text()
    (aged.folder / "suite.toml").write_text(text.replace('name = "desk"', 'name = "table"'))
    with pytest.raises(BaselineDamaged, match="is the baseline of suite 'desk', and this suite is 'table'"):
        migrate(load_suite(aged.folder))
