from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from kbgate.tasks.baseline import files as module
from kbgate.tasks.baseline.files import read_baseline, write_baseline
from kbgate.tasks.baseline.review import baseline_at, diff_baselines
from kbgate.tasks.conclusions import VerdictName
from kbgate.tasks.domain import Baseline
from kbgate.tasks.errors import BaselineDamaged, Refused, Unmeasured
from kbgate.tasks.records import digest
from kbgate.tasks.schema import Anchor, BaselineCase, Mean
from kbgate.tasks.settings import Suite
from tests.conftest import MEDICATION, edit_lines, edit_text
from tests.exams import Desk, filler

HIT, MISS = filler("c0"), filler("c1", "c2", "c3", "c4", "c0")


def three(desk: Desk) -> dict[str, list[str]]:
    for name in "abc":
        desk.case(name)
    return {"a": HIT, "b": MISS, "c": HIT}


def read(folder: Path, name: str = "desk") -> Baseline | None:
    return read_baseline(Suite(folder=folder, name=name))


def test_writing_what_was_read_gives_the_same_bytes(desk: Desk) -> None:
    accepted = desk.accept(three(desk))
    written = {file.name: file.read_text() for file in desk.folder.glob("baseline*")}
    assert module._files(accepted.summary, accepted.cases, accepted.cards) == written
    assert set(written) == {"baseline.json", "baseline.cases.jsonl", "baseline.cards.jsonl"}


def test_the_bundled_baseline_is_written_as_it_is_read() -> None:
    baseline = read(MEDICATION, "medication")
    assert baseline is not None
    written = {file.name: file.read_text(encoding="utf-8") for file in MEDICATION.glob("baseline*")}
    assert module._files(baseline.summary, baseline.cases, baseline.cards) == written


def test_a_baseline_that_says_less_of_its_settings_keeps_its_digest(desk: Desk) -> None:
    """The first kbgate that wrote this schema did not write how cards become rankings."""
    desk.accept(three(desk))
    summary = json.loads((desk.folder / "baseline.json").read_text())
    for name in ("settings", "pipeline"):
        summary["provenance"].pop(name, None)
    content = {name: value for name, value in summary.items() if name != "digests"}
    summary["digests"]["summary"] = digest(content)
    (desk.folder / "baseline.json").write_text(json.dumps(summary))
    baseline = read(desk.folder)
    assert baseline is not None
    assert (baseline.summary.provenance.settings, baseline.summary.plain()) == ("", summary)


def test_a_line_is_a_case_with_all_that_a_comparison_needs(desk: Desk) -> None:
    accepted = desk.accept(three(desk))
    row = accepted.cases["b"]
    assert row.gold_ranks == {"c0": 5}
    assert row.top == ["c1", "c2", "c3"]
    assert row.kth == {"exact": 0.97}
    assert row.scores["contract@3"] == 0.0
    assert accepted.summary.means["contract@3"] == Mean(mean=0.666667, n=3)
    assert row.asked.plain() == {"query": "b?", "kind": "golden", "groups": [["c0"]], "grades": {"c0": 1}}
    assert (row.cosine, row.domains, row.tiers) == (0.99, [], [])
    assert accepted.cards["c0"].plain().keys() == {"id", "hash", "text", "length"}


def test_no_files_is_no_baseline(tmp_path: Path) -> None:
    assert read(tmp_path) is None


def drop_case(folder: Path) -> None:
    lines = (folder / "baseline.cases.jsonl").read_text().splitlines(keepends=True)
    (folder / "baseline.cases.jsonl").write_text("".join(lines[1:]))


def drop_card(folder: Path) -> None:
    lines = (folder / "baseline.cards.jsonl").read_text().splitlines(keepends=True)
    (folder / "baseline.cards.jsonl").write_text("".join(lines[:-1]))


def truncate(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        text = (folder / name).read_text()
        (folder / name).write_text(text[: len(text) // 2])

    return damage


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def edit_score(folder: Path) -> None:
    edit_lines(folder / "baseline.cases.jsonl", lambda row: {**row, "scores": {**row["scores"], "hit@1": 0.5}})


def edit_summary(folder: Path, **changes: object) -> None:
    summary = json.loads((folder / "baseline.json").read_text())
    (folder / "baseline.json").write_text(json.dumps({**summary, **changes}))


def edit_mean(folder: Path) -> None:
    edit_text(folder / "baseline.json", "0.666667", "0.5")


@pytest.mark.parametrize(
    "damage",
    [
        drop_case, drop_card, edit_score, edit_mean, truncate("baseline.json"), truncate("baseline.cases.jsonl"),
        truncate("baseline.cards.jsonl"), remove("baseline.json"), remove("baseline.cases.jsonl"),
        remove("baseline.cards.jsonl"), lambda folder: (folder / "baseline.json").write_text("[]"),
        lambda folder: (folder / "baseline.json").write_bytes(b"\xff"),
        lambda folder: edit_text(folder / "baseline.json", '"anchor": {', '"anker": {'),
        lambda folder: edit_text(folder / "baseline.json", '"suite": "desk"', '"suite": "other"'),
        lambda folder: edit_text(folder / "baseline.json", '"ndcg": 1', '"ndcg": 2'),
        lambda folder: edit_summary(folder, digests=None),
        lambda folder: edit_summary(folder, metric_versions={}),
        lambda folder: edit_summary(folder, lanes=None, accepted=None),
        lambda folder: edit_lines(folder / "baseline.cases.jsonl", lambda row: {**row, "id": ["a"]}),
        lambda folder: edit_lines(folder / "baseline.cases.jsonl", lambda row: {k: v for k, v in row.items() if k != "top"}),
    ],
)  # fmt: skip
def test_files_that_cannot_be_trusted_are_refused(damage: Callable[[Path], None], desk: Desk) -> None:
    desk.accept(three(desk))
    damage(desk.folder)
    with pytest.raises(BaselineDamaged):
        read(desk.folder)


ANEW = "accept anew with: kbgate baseline update"


@pytest.mark.parametrize(("schema", "sentence"), [("4", "upgrade kbgate"), ("1", ANEW), ('"x"', ANEW)])
def test_another_schema_names_the_next_command(schema: str, sentence: str, desk: Desk) -> None:
    desk.accept(three(desk))
    edit_text(desk.folder / "baseline.json", '"schema": 3', f'"schema": {schema}')
    with pytest.raises(BaselineDamaged, match=sentence):
        read(desk.folder)


def test_a_regression_is_accepted_only_knowingly_and_leaves_its_reason(desk: Desk) -> None:
    rankings = three(desk)
    desk.accept(rankings)
    worse = {**rankings, "a": MISS}
    with pytest.raises(Refused, match="1 case newly failing: a"):
        desk.accept(worse)
    with pytest.raises(Refused, match=r"worse than the anchor, twice its tolerance of 0.02 is allowed"):
        desk.accept(worse, accept_regression=True)
    accepted = desk.accept(worse, accept_regression=True, anchor=True)
    assert accepted.summary.accepted.plain() == {
        "on": "2026-06-01", "reason": "a reason", "verdict": "BLOCK", "accepted_regression": ["a"],
        "in_spite_of": [
            "1 case newly failing: a",
            "contract@3 fell by 0.333 (0.667 to 0.333, 95 % interval -0.667 to +0.333); 0.02 is allowed, n = 3",
        ],
    }  # fmt: skip
    assert desk.judge(worse).name == VerdictName.PASS


@pytest.mark.parametrize(("level", "kept"), [("advisory", 0), ("supporting", 1)])
def test_advice_is_nothing_that_a_run_is_accepted_in_spite_of(level: str, kept: int, desk: Desk) -> None:
    desk.gates += f'ndcg = {{floor = 0.99, level = "{level}"}}\n'
    rankings = three(desk)
    assert any(reason.level == level and "ndcg" in reason.sentence for reason in desk.judge(rankings).reasons)
    assert len(desk.accept(rankings).summary.accepted.in_spite_of) == kept


def test_never_from_the_subset_nor_from_an_incomplete_run_nor_without_a_reason(desk: Desk) -> None:
    rankings = three(desk)
    with pytest.raises(Refused, match="never from the fast subset"):
        write_baseline(desk.evaluation({"a": HIT}, mode="fast"), "r", True)
    with pytest.raises(Unmeasured, match="nothing to accept"):
        write_baseline(desk.evaluation({**rankings, "a": "raised"}), "r", True)
    with pytest.raises(Refused, match="needs a reason"):
        write_baseline(desk.evaluation(rankings), "  ", False)
    for n in range(20):
        desk.case(f"more{n}")
    many = {**rankings, **{f"more{n}": HIT for n in range(20)}, "a": "timeout"}
    with pytest.raises(Refused, match="not complete"):
        write_baseline(desk.evaluation(many), "r", True)
    assert not list(desk.folder.glob("baseline*"))


def test_what_could_not_be_compared_is_accepted_knowingly_or_not_at_all(desk: Desk) -> None:
    rankings = three(desk)
    desk.accept(rankings)
    desk.settings = "top_k = 2\nk_values = [1, 3]\n"
    with pytest.raises(Refused, match="top_k was 3 in the baseline and is 2 now"):
        desk.accept(rankings)
    with pytest.raises(Refused, match="the anchor holds no contract to add up drops from"):
        desk.accept(rankings, accept_regression=True)
    accepted = desk.accept(rankings, accept_regression=True, anchor=True)
    assert accepted.summary.accepted.in_spite_of == ["top_k was 3 in the baseline and is 2 now"]


def test_a_vanished_gold_is_relabelled_before_anything_is_accepted(desk: Desk) -> None:
    rankings = three(desk)
    desk.case("lost", gold="c7")
    desk.accept({**rankings, "lost": filler("c7")})
    desk.cards = [card for card in desk.cards if card["id"] != "c7"]
    with pytest.raises(Refused, match="give these cases another gold"):
        desk.accept({**rankings, "lost": HIT}, accept_regression=True)


def test_a_kill_before_the_commit_point_leaves_the_old_files(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    rankings = three(desk)
    old = desk.accept(rankings)
    monkeypatch.setattr(Path, "rename", lambda self, target: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        desk.accept({**rankings, "b": HIT})
    monkeypatch.undo()
    assert read_baseline(desk.exam(rankings).suite) == old


def test_many_cards_stand_in_parquet(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PARQUET_ABOVE", 5)
    desk.accept(three(desk))
    assert (desk.folder / "baseline.cards.parquet").exists()
    assert not (desk.folder / "baseline.cards.jsonl").exists()
    table = pd.read_parquet(desk.folder / "baseline.cards.parquet")
    table.iloc[:-1].to_parquet(desk.folder / "baseline.cards.parquet")
    with pytest.raises(BaselineDamaged):
        read(desk.folder)


def test_a_diff_reads_like_a_review(desk: Desk) -> None:
    rankings = three(desk)
    old = desk.accept(rankings)
    desk.cards.append({"id": "c99", "text": "new"})
    desk.case("b", query="better asked?")
    new = desk.accept({**rankings, "b": HIT}, accept_regression=True)
    lines = diff_baselines(old, new, desk.exam(rankings).suite)
    assert lines[0] == "reason: a reason"
    assert "contract@3: 0.6667 (n = 3) -> 1.0000 (n = 3)" in lines
    assert "case b: edited" in lines
    assert "case b: contract@3 0.0 -> 1.0" in lines
    assert "card c99: added" in lines
    assert diff_baselines(new, new, desk.exam(rankings).suite) == []


def test_the_baseline_of_a_commit_is_read_from_git(tmp_path: Path) -> None:
    import subprocess

    folder = tmp_path / "repo" / "suite"
    shutil.copytree(MEDICATION, folder)

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        subprocess.run(["git", *identity, *arguments], cwd=folder.parent, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    suite = Suite(folder=folder, name="medication")
    committed = baseline_at(suite, "HEAD")
    assert committed == read_baseline(suite)
    summary = json.loads((folder / "baseline.json").read_text())
    assert summary["accepted"]["reason"]
    for file in folder.glob("baseline*"):
        file.unlink()
    assert baseline_at(suite, "HEAD") == committed
    assert diff_baselines(committed, read_baseline(suite), suite) == ["the baseline is gone"]


def scores_at_the_anchor(row: BaselineCase) -> dict[str, float]:
    assert row.anchor is not None
    return row.anchor.scores


def small_fall(rankings: dict[str, list[str]], step: int) -> dict[str, list[str]]:
    return {case: MISS if int(case[1:]) < step else ranking for case, ranking in rankings.items()}


def test_ten_small_falls_do_not_become_a_big_one(desk: Desk) -> None:
    """Each step is inside the tolerance; together they are beyond twice of it at the third, and there it ends."""
    desk.gates = "newly_failing = {ceiling = 1.0}\ncontract = {tolerance = 0.02}"
    rankings = {f"q{n:02d}": HIT for n in range(60)}
    for case in rankings:
        desk.case(case)
    desk.accept(rankings)
    for step in range(1, 11):
        assert desk.judge(small_fall(rankings, step)).name == VerdictName.WARN
        if step == 3:  # 2 of 60 are 0.033; 3 are 0.050, beyond 0.040
            break
        desk.accept(small_fall(rankings, step))
    with pytest.raises(Refused, match="small drops add up"):
        desk.accept(small_fall(rankings, 3))
    with pytest.raises(Refused, match="small drops add up"):
        desk.accept(small_fall(rankings, 3), anchor=True)
    anew = desk.accept(small_fall(rankings, 3), anchor=True, accept_regression=True)
    assert scores_at_the_anchor(anew.cases["q00"]) == {"contract@3": 0.0}
    assert desk.accept(small_fall(rankings, 4)).summary.anchor == anew.summary.anchor


def test_the_first_baseline_is_the_anchor_until_another_is(desk: Desk) -> None:
    rankings = three(desk)
    first = desk.accept(rankings)
    assert first.summary.anchor == Anchor(on=dt.date(2026, 6, 1), reason="a reason", index="f" * 16)
    assert scores_at_the_anchor(first.cases["a"]) == {"contract@3": 1.0}
    desk.case("a", query="a? What else?")
    desk.earlier = rankings
    desk.accept(rankings, accept_regression=True)
    edited = desk.accept(rankings).cases["a"]
    assert edited.anchor is not None
    assert (edited.anchor.hash, edited.anchor.asked) == (first.cases["a"].hash, first.cases["a"].asked)


def test_a_tolerance_the_anchor_does_not_know_needs_an_anchor(desk: Desk) -> None:
    rankings = three(desk)
    desk.accept(rankings)
    desk.gates += "\nmrr = {tolerance = 0.1}"
    with pytest.raises(Refused, match="the anchor holds no mrr to add up drops from"):
        desk.accept(rankings)
    assert scores_at_the_anchor(desk.accept(rankings, anchor=True).cases["a"]) == {"contract@3": 1.0, "mrr@3": 1.0}
    desk.accept(rankings)


def test_a_review_without_git_measures_nothing(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.case("a")
    suite = desk.exam({"a": filler("c0")}).suite
    monkeypatch.setenv("PATH", str(tmp_path / "nothing here"))
    with pytest.raises(Unmeasured, match="git cannot be run"):
        baseline_at(suite, "HEAD")


def test_a_baseline_of_another_suite_is_refused(desk: Desk) -> None:
    desk.accept(three(desk))
    with pytest.raises(BaselineDamaged, match="is the baseline of suite 'desk', and this suite is 'other'"):
        read(desk.folder, "other")


def test_a_lineage_is_made_once_and_kept(desk: Desk) -> None:
    rankings = three(desk)
    first = desk.accept(rankings)
    assert len(first.summary.lineage) == 32
    assert desk.accept(rankings).summary.lineage == first.summary.lineage
    assert first.summary.folder == desk.folder.resolve().as_posix()


def test_long_values_of_fields_are_kept_as_hashes(desk: Desk) -> None:
    desk.settings += '[kb]\nfilterable = ["note", "audience"]\n'
    desk.cards[0] |= {"metadata": {"note": "n" * 100, "audience": "all"}, "topics": ["t"], "language": "en"}
    row = desk.accept(three(desk)).cards["c0"]
    assert (row.language, row.fields["audience"], row.fields["topics"]) == ("en", "all", ["t"])
    assert str(row.fields["note"]).startswith("sha256:")
