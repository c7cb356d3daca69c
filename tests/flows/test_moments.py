"""The four moments without a server: the same bodies, called by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from kbgate.reports.render import COMMENT_LIMIT, render_comment
from kbgate.tasks.outcomes import PullRequest
from kbgate.tasks.runs.document import verdict_document
from tests.conftest import MEDICATION, edit_lines, edit_text, last_report, last_verdict, read_lines, run_named, runs_in
from tests.exams import Desk, filler

CLI = Callable[..., int]
LOST = "epilepsy-missed"


def lose_a_card(suite: Path) -> None:
    edit_lines(suite / "cards.jsonl", lambda card: None if card["id"] == LOST else card)


def runs(home: Path) -> set[str]:
    return {folder.name for folder in runs_in(home)}


# ------------------------------------------------------------------ nightly


@pytest.mark.slow
def test_a_suite_that_errs_stops_no_other_and_the_night_is_not_green(
    tmp_path: Path, kbgate: CLI, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a-broken", "b-fine", "c-red"):
        shutil.copytree(MEDICATION, tmp_path / name)
    (tmp_path / "a-broken" / "golden.jsonl").write_text("{\n")
    lose_a_card(tmp_path / "c-red")
    assert kbgate("nightly", "--folder", tmp_path) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ERROR", "WARN", "BLOCK"]
    assert "golden.jsonl:1" in lines[0]
    assert f"card '{LOST}'" in lines[2]
    assert read_lines(home / "nightly.jsonl")[-1]["verdict"] == "ERROR"
    assert kbgate("nightly", tmp_path / "b-fine") == 0
    assert kbgate("nightly", tmp_path / "b-fine", tmp_path / "c-red") == 1


def test_a_suite_that_lost_its_settings_is_missed(tmp_path: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(MEDICATION, tmp_path / "suites" / "lost")
    (tmp_path / "suites" / "lost" / "suite.toml").unlink()
    assert kbgate("nightly", "--folder", tmp_path / "suites") == 2
    assert capsys.readouterr().out.startswith("ERROR")


def test_a_night_that_examined_nothing_is_not_green(tmp_path: Path, kbgate: CLI) -> None:
    assert kbgate("nightly", "--folder", tmp_path) == 4


# ------------------------------------------------------------------ after ingest


def test_an_ingest_is_judged_once_and_a_red_one_stays_red(
    medication: Path, kbgate: CLI, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_lines(medication / "golden.jsonl", lambda case: {**case, "notes": "own"})
    with (medication / "cards.jsonl").open("a") as file:
        question = "How do I get off my depression tablets safely?"
        for n in range(12):
            card = {"id": f"forum-{n}", "title": question, "text": f"{question} {n}", "metadata": {"audience": "public"}}
            file.write(json.dumps(card) + "\n")
    assert kbgate("ingested", medication, "--batch", "evening import") == 1
    assert "quit-mood-pill" in last_verdict(home)["reasons"][0]["sentence"]
    assert last_verdict(home)["arrivals"]["batch"] == "evening import"
    report = last_report(home)
    assert "## What came in since" in report
    assert "Batch evening import" in report
    assert "forum-11" in report.replace("\\", "")
    before = runs(home)
    capsys.readouterr()
    assert kbgate("ingested", medication, "--batch", "the same again") == 1
    assert runs(home) == before
    assert "nothing changed since run" in capsys.readouterr().err


# ------------------------------------------------------------------ pull request


class Repository:
    """A real git repository with a suite on its main branch and a change checked out."""

    def __init__(self, folder: Path, suite: Path):
        self.folder, self.suite = folder, folder / "suites" / "medication"
        shutil.copytree(suite, self.suite)
        self.git("init", "-q", "-b", "main")
        self.commit("first")
        self.git("checkout", "-q", "-b", "change")

    def git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=self.folder, check=True, capture_output=True)

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", message)


@pytest.fixture(autouse=True)
def _in_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose target branch is meant, the working directory says."""
    (tmp_path / "repo").mkdir()
    monkeypatch.chdir(tmp_path / "repo")


@pytest.fixture
def repository(tmp_path: Path, quarter: Path) -> Repository:
    return Repository(tmp_path / "repo", quarter)


def comment(home: Path) -> str:
    verdict = last_verdict(home)
    assert "comment.md" in verdict["files"], "what vouches for the verdict vouches for the comment"
    return (run_named(home, verdict["run"]) / "comment.md").read_text()


def test_a_change_that_changes_nothing_passes_on_the_subset(repository: Repository, kbgate: CLI, home: Path) -> None:
    (repository.folder / "notes.txt").write_text("elsewhere")
    repository.commit("elsewhere")
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "main") == 0
    verdict = last_verdict(home)
    assert (verdict["mode"], verdict["cases"]["asked"], verdict["cases"]["touched"]) == ("fast", 50, [])
    assert comment(home).startswith("## kbgate: PASS: no question lost its answer")


def test_touched_cases_are_asked_beside_the_subset_and_stay_out_of_its_means(
    repository: Repository, kbgate: CLI, home: Path
) -> None:
    edit_lines(repository.suite / "cards.jsonl", lambda c: {**c, "source_url": "x"} if c["id"] == LOST else c)
    repository.commit("a source")
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "main") == 0
    verdict = last_verdict(home)
    assert "lamictal-week" in verdict["cases"]["touched"]
    assert verdict["cases"]["asked"] == 50 + len(verdict["cases"]["touched"])
    contract = next(f for f in verdict["figures"] if f["metric"] == "contract@5" and f["lane"] == "hybrid" and not f["slice"])
    assert contract["n"] == 47


def test_lowering_the_gates_and_worsening_retrieval_is_still_a_block(
    kbgate: CLI, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repository = Repository(tmp_path / "repo", MEDICATION)
    suite = repository.suite
    edit_text(suite / "suite.toml", "newly_failing = {ceiling = 0, slack = 1}", "newly_failing = {ceiling = 1.0}")
    edit_text(suite / "suite.toml", "contract = {tolerance = 0.02}", "contract = {tolerance = 1.0}")
    # Canaries are no gate that can be lowered; this change avoids them.
    edit_text(suite / "suite.toml", "[gates]", "[retrieval]\nrrf_k = 1\ncandidates = 12\n\n[gates]")
    edit_lines(suite / "cards.jsonl", lambda c: {**c, "text": c["text"][:300]} if c["domain"] == "cardiovascular" else c)
    repository.commit("lower the bar and jump over it")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    assert kbgate("pull-request", suite, "--baseline-ref", "main") == 1
    verdict, told = last_verdict(home), comment(home)
    assert (verdict["verdict"], verdict["mode"]) == ("BLOCK", "full")
    assert told.startswith("## kbgate: BLOCK: ")
    assert "This change edits its own baseline or gates" in told
    assert "The full set decided: how cards become rankings is not as it was in the baseline" in told
    assert "| why | cases |" in told
    assert (tmp_path / "summary.md").read_text() == told


@pytest.mark.slow
def test_blessing_ones_own_regression_with_a_baseline_is_still_a_block(repository: Repository, kbgate: CLI, home: Path) -> None:
    suite = repository.suite
    edit_lines(suite / "cards.jsonl", lambda c: {**c, "text": c["text"][:100]})
    edit_lines(suite / "golden.jsonl", lambda c: None if "evidence" in c else c)
    update = ("baseline", "update", suite, "--reason", "trust me", "--accept-regression")
    assert kbgate(*update) == 1  # far beyond twice the tolerance: the anchor has to go too
    assert kbgate(*update, "--anchor") == 0
    repository.commit("cut")
    assert kbgate("pull-request", suite, "--baseline-ref", "main") == 1
    assert "its verdict would be" in comment(home)


def test_editing_the_baseline_is_at_least_a_warning(
    repository: Repository, kbgate: CLI, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kbgate("baseline", "update", repository.suite, "--reason", "the same, renewed") == 0
    repository.commit("renew")
    capsys.readouterr()
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "main") == 0
    assert capsys.readouterr().err.startswith("WARN the change edits its own baseline or gates")
    assert comment(home).startswith("## kbgate: WARN: ")


def hide_by_date(suite: Path) -> None:
    """Bury an answer, and move the date to one at which what buries it is not there yet."""
    bury(suite, valid_from="2026-05-01")
    edit_text(suite / "suite.toml", "as_of = 2026-06-01", "as_of = 2026-04-30")


def drop_the_buried(suite: Path) -> None:
    bury(suite)
    edit_lines(suite / "golden.jsonl", lambda case: None if case["id"] == "sugar-pill-diarrhea" else case)


def rename_the_buried(suite: Path) -> None:
    bury(suite)
    edit_lines(suite / "golden.jsonl", lambda c: {**c, "id": "another-name"} if c["id"] == "sugar-pill-diarrhea" else c)


def other_cards(suite: Path) -> None:
    shutil.copy(suite / "cards.jsonl", suite / "old.jsonl")
    bury(suite)
    edit_text(suite / "suite.toml", "[kb]", '[kb]\npath = "old.jsonl"')


def edit_outside_the_subset(suite: Path) -> None:
    fast = {"brain-zaps", "powder-breath", "tb-orange", "cholesterol-worth"}
    edit_lines(suite / "golden.jsonl", lambda c: {**c, "query": "xyzzy"} if c["id"] in fast else c)


def other_chunks(suite: Path) -> None:
    edit_text(suite / "suite.toml", "[gates]", "[chunking]\nsize = 64\noverlap = 16\n\n[gates]")


def bury(suite: Path, **fields: str) -> None:
    question = next(c["query"] for c in read_lines(suite / "golden.jsonl") if c["id"] == "sugar-pill-diarrhea")
    with (suite / "cards.jsonl").open("a") as file:
        for n in range(8):
            card = {"id": f"forum-{n}", "title": question, "text": question, "language": "en", **fields}
            file.write(json.dumps({**card, "metadata": {"audience": "public"}}) + "\n")


@pytest.mark.parametrize(
    ("change", "code", "word"),
    [
        (hide_by_date, 1, "BLOCK"), (drop_the_buried, 1, "no longer asked"), (rename_the_buried, 1, "BLOCK"),
        (other_cards, 0, "WARN"), (edit_outside_the_subset, 1, "BLOCK"),
        pytest.param(other_chunks, 1, "BLOCK", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_ways_round_the_gate_lead_into_it(
    change: Callable[[Path], None], code: int, word: str, repository: Repository, kbgate: CLI, home: Path
) -> None:
    change(repository.suite)
    repository.commit("a way round")
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "main") == code
    assert word in comment(home)


def test_a_case_taken_out_is_a_warning_at_least(repository: Repository, kbgate: CLI, home: Path) -> None:
    edit_lines(repository.suite / "golden.jsonl", lambda case: None if case["id"] == "n-bike" else case)
    repository.commit("one less")
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "main") == 0
    assert comment(home).startswith("## kbgate: WARN: 1 case of the baseline no longer asked: n-bike")


def test_a_suite_that_had_no_settings_is_judged_by_the_defaults(quarter: Path, tmp_path: Path, kbgate: CLI, home: Path) -> None:
    repository = Repository(tmp_path / "repo", quarter)
    repository.git("checkout", "-q", "main")
    (repository.suite / "suite.toml").rename(tmp_path / "suite.toml")
    repository.commit("no settings yet")
    repository.git("checkout", "-q", "-B", "change")
    text = (
        (tmp_path / "suite.toml")
        .read_text()
        .replace("newly_failing = {ceiling = 0, slack = 1}", "newly_failing = {ceiling = 1.0}")
    )
    (repository.suite / "suite.toml").write_text(text)
    repository.commit("gates of my own")
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "main") == 3
    assert "This change edits its own baseline or gates" in comment(home)


def test_settings_brought_to_a_collection_without_any_are_flagged(
    quarter: Path, tmp_path: Path, kbgate: CLI, home: Path
) -> None:
    repository = Repository(tmp_path / "repo", quarter)
    repository.git("checkout", "-q", "main")
    text = (repository.suite / "suite.toml").read_text()
    (repository.suite / "suite.toml").unlink()
    repository.commit("no settings yet")
    repository.git("checkout", "-q", "-B", "change")
    gates = text[text.index("[gates]") :]
    (repository.suite / "suite.toml").write_text(text.replace(gates, ""))
    repository.commit("no gates, but settings")
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "main") == 3
    assert "This change edits its own baseline or gates" in comment(home)


def test_a_branch_behind_its_target_is_told_to_merge_and_not_judged(repository: Repository, kbgate: CLI, home: Path) -> None:
    """What the target accepted since is missing here: a card lost to that is no fall, and no gate was edited."""
    repository.git("checkout", "-q", "main")
    edit_lines(repository.suite / "cards.jsonl", lambda c: {**c, "source_url": "x"} if c["id"] == LOST else c)
    repository.commit("the target moves on")
    repository.git("checkout", "-q", "change")
    lose_a_card(repository.suite)
    repository.commit("and the branch loses a card")
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "main") == 3
    verdict = last_verdict(home)
    assert (verdict["verdict"], verdict["code"]) == ("INCONCLUSIVE", "behind")
    assert [reason["check"] for reason in verdict["reasons"]] == ["behind"]
    assert "merge it first: git merge main" in verdict["reasons"][0]["sentence"]
    assert "edits its own baseline" not in comment(home)


def test_a_change_compared_with_itself_is_refused(repository: Repository, kbgate: CLI) -> None:
    lose_a_card(repository.suite)
    repository.commit("worse")
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "HEAD") == 2
    repository.git("tag", "main", "HEAD")
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "main") == 2
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "refs/heads/main") == 1


def test_what_git_cannot_show_is_not_taken_for_absent(
    repository: Repository, kbgate: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit_text(repository.suite / "suite.toml", "newly_failing = {ceiling = 0, slack = 1}", "newly_failing = {ceiling = 1.0}")
    repository.commit("lower the bar")
    repository.git("config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    clone = ["git", "clone", "-q", "--filter=blob:none", "--branch", "change", f"file://{repository.folder}", str(partial)]
    subprocess.run(clone, check=True, capture_output=True)
    monkeypatch.chdir(partial)
    repository.folder.rename(tmp_path / "gone")
    assert kbgate("pull-request", partial / "suites" / "medication", "--baseline-ref", "origin/main") == 4


def test_a_link_to_another_suite_is_refused(repository: Repository, kbgate: CLI) -> None:
    repository.suite.rename(repository.suite.with_name("easy"))
    repository.suite.symlink_to("easy")
    repository.commit("a link")
    assert kbgate("pull-request", repository.suite, "--baseline-ref", "main") == 2


@pytest.mark.parametrize("ref", ["no-such-branch", "--help", ""])
def test_a_target_branch_that_is_not_there_is_bad_input(ref: str, repository: Repository, kbgate: CLI) -> None:
    assert kbgate("pull-request", repository.suite, f"--baseline-ref={ref}") == 2


def test_a_suite_the_target_branch_does_not_know_is_inconclusive(
    repository: Repository, quarter: Path, kbgate: CLI, home: Path
) -> None:
    new = Path(shutil.copytree(quarter, repository.folder / "suites" / "new"))
    repository.commit("a new suite")
    assert kbgate("pull-request", new, "--baseline-ref", "main") == 3
    assert last_verdict(home)["code"] == "no_baseline"


def test_a_comment_stays_below_the_limit_whatever_the_input(desk: Desk) -> None:
    for n in range(300):
        desk.case(f"q{n:03d}-" + "x" * 300, query="long | <b>@all</b> " * 60)
    rankings = {case["id"]: filler("c0") for case in desk.cases}
    desk.accept(rankings)
    evaluation = desk.evaluation({case: filler("c1", "c2", "c3", "c4", "c0") for case in rankings})
    told = render_comment(PullRequest(evaluation, evaluation, evaluation.verdict, "main`x`"), verdict_document(evaluation))
    assert len(told) < COMMENT_LIMIT
    assert "300 cases newly failing" in told


# ------------------------------------------------------------------ promote


def test_promote_rollback_status_and_gate(
    medication: Path, kbgate: CLI, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_text(medication / "suite.toml", "[kb]", '[production]\npath = "serving"\nkeep = 2\n\n[kb]')
    pointer = medication / "serving" / "CURRENT"
    assert kbgate("status", medication) == 0
    assert "nothing is served" in capsys.readouterr().out
    assert kbgate("promote", medication) == 0
    first = json.loads(pointer.read_text())["target"]["build"]
    assert last_verdict(home)["build"] == first

    lose_a_card(medication)
    before = pointer.read_bytes()
    assert kbgate("promote", medication) == 1
    assert pointer.read_bytes() == before
    assert [path.name for path in (medication / "serving" / "versions").iterdir()] == [first]
    shutil.copy(MEDICATION / "cards.jsonl", medication / "cards.jsonl")

    assert kbgate("promote", medication, "--update-baseline", "--reason", "promoted") == 0
    second = json.loads(pointer.read_text())["target"]["build"]
    assert second != first
    assert json.loads((medication / "baseline.json").read_text())["accepted"]["reason"] == "promoted"
    verdict = run_named(home, last_verdict(home)["run"]) / "verdict.json"
    index = last_verdict(home)["fingerprints"]["index"]
    # The verdict was taken against the baseline before this promotion accepted another.
    assert kbgate("gate", medication, "--verdict", verdict, "--index-fingerprint", index) == 1
    assert kbgate("evaluate", medication, "--now") == 0
    verdict = run_named(home, last_verdict(home)["run"]) / "verdict.json"
    assert kbgate("gate", medication, "--verdict", verdict, "--index-fingerprint", index) == 0
    assert kbgate("gate", medication, "--verdict", verdict, "--index-fingerprint", "0" * 16) == 1

    assert kbgate("rollback", medication) == 0
    assert json.loads(pointer.read_text())["target"]["build"] == first
    capsys.readouterr()
    assert kbgate("status", medication) == 0
    said = capsys.readouterr().out
    assert f"served: {first}" in said
    assert f"kept: {second}" in said
    assert kbgate("rollback", medication, "--to", "nothing-like-it") == 1
    assert [line["action"] for line in read_lines(medication / "serving" / "audit.jsonl")] == [
        "promoted", "refused", "promoted", "rolled back",
    ]  # fmt: skip


def test_a_promotion_that_may_not_update_the_baseline_moves_nothing(medication: Path, home: Path) -> None:
    from kbgate.flows import promote
    from kbgate.tasks.errors import InputError

    edit_text(medication / "suite.toml", "[kb]", '[production]\npath = "serving"\n\n[kb]')
    with pytest.raises(InputError, match="a new baseline needs one"):
        promote.run(str(medication), update_baseline=True, home=str(home))
    assert not (medication / "serving" / "CURRENT").exists()


def test_a_candidate_that_was_examined_and_not_decided_does_not_stay(
    medication: Path, kbgate: CLI, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kbgate.tasks import stages

    edit_text(medication / "suite.toml", "[kb]", '[production]\npath = "serving"\n\n[kb]')
    assert kbgate("promote", medication) == 0
    served = [path.name for path in (medication / "serving" / "versions").iterdir()]
    before = (medication / "serving" / "CURRENT").read_bytes()
    monkeypatch.setattr(stages, "promote", lambda *_: 1 / 0)
    assert kbgate("promote", medication) == 4
    assert [path.name for path in (medication / "serving" / "versions").iterdir()] == served
    assert (medication / "serving" / "CURRENT").read_bytes() == before


def test_what_is_served_and_gone_is_said_so(medication: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    edit_text(medication / "suite.toml", "[kb]", '[production]\npath = "serving"\n\n[kb]')
    assert kbgate("promote", medication) == 0
    shutil.rmtree(medication / "serving" / "versions")
    assert kbgate("status", medication) == 1
    assert "cannot be opened" in capsys.readouterr().err


def test_serving_needs_a_server(kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbgate("serve") == 4
    assert "PREFECT_API_URL is not set" in capsys.readouterr().err


@pytest.mark.slow
def test_a_server_is_promoted_to_and_readers_follow_one_collection(
    medication: Path, kbgate: CLI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.servers import chroma_server

    def serving(url: str) -> str:
        """As a reader finds it: over HTTP, nothing of kbgate."""
        collections = httpx.get(f"{url}/api/v2/tenants/default_tenant/databases/default_database/collections").json()
        pointer = next(c for c in collections if c["name"] == "answers")
        build: str = json.loads(pointer["metadata"]["pointer"])["target"]["build"]
        assert build in {c["name"] for c in collections}
        return build

    (tmp_path / "chroma").mkdir()
    with chroma_server(tmp_path / "chroma") as url:
        place = f'[production]\nurl = "{url}"\ncollection = "answers"\n\n[kb]'
        edit_text(medication / "suite.toml", "[kb]", place)
        assert kbgate("promote", medication) == 0
        first = serving(url)
        lose_a_card(medication)
        assert kbgate("promote", medication) == 1
        assert serving(url) == first
        shutil.copy(MEDICATION / "cards.jsonl", medication / "cards.jsonl")
        assert kbgate("promote", medication) == 0
        second = serving(url)
        assert second != first
        assert kbgate("rollback", medication) == 0
        assert serving(url) == first
        capsys.readouterr()
        assert kbgate("status", medication) == 0
        assert f"served: {first}" in capsys.readouterr().out
    assert kbgate("status", medication) == 4


def test_cards_an_ingest_announced_and_did_not_bring_are_told(medication: Path, kbgate: CLI, home: Path) -> None:
    assert kbgate("evaluate", medication) == 0
    assert kbgate("ingested", medication, "--ids", "bp-why, dm-hypo") == 0
    before = runs(home)
    assert kbgate("ingested", medication, "--ids", "bp-why", "--ids", "lost-on-the-way") == 1
    assert len(runs(home) - before) == 1
    verdict = last_verdict(home)
    assert verdict["verdict"] == "BLOCK"
    assert "announced by the ingest and not in the knowledge base: lost-on-the-way" in verdict["reasons"][0]["sentence"]
