"""What is decided at every door: one rule for home, and one reading of the clock. Commands, and the bodies of flows called as
a worker calls them.
"""

from __future__ import annotations

import datetime as dt
import importlib
import inspect
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kbgate.flows import after_ingest, door, evaluate, nightly, promote, pull_request
from tests.conftest import MEDICATION, ROOT, edit_lines, edit_text, last_report, last_verdict, run_named, write_lines

CLI = Callable[..., int]
DEPLOYMENTS = yaml.safe_load((ROOT / "deploy" / "prefect.yaml").read_text())["deployments"]


@pytest.fixture
def faq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kbgate: CLI) -> Path:
    """A small suite that ranks by words, in git, its baseline accepted; home is beside it, and nothing is told to a flow."""
    suite = tmp_path / "repo" / "faq"
    suite.mkdir(parents=True)
    (suite / "suite.toml").write_text('name = "faq"\ntop_k = 1\nk_values = [1]\n[retrieval]\nmethod = "bm25"\n')
    words = ("vpn", "leave", "badge")
    write_lines(suite / "cards.jsonl", [{"id": word, "text": f"All there is to know of the {word}."} for word in words])
    write_lines(suite / "golden.jsonl", [{"id": f"q-{word}", "query": word, "must_cite_one_of": [word]} for word in words])
    monkeypatch.chdir(suite.parent)
    monkeypatch.setenv("KBGATE_HOME", str(tmp_path / "kept"))
    assert kbgate("baseline", "update", suite, "--reason", "first") == 0
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "first"], ["checkout", "-qb", "change"]):
        subprocess.run(["git", *identity, *command], cwd=suite.parent, check=True, capture_output=True)
    (suite.parent / "notes.txt").write_text("a change elsewhere")
    for command in (["add", "-A"], ["commit", "-qm", "second"]):
        subprocess.run(["git", *identity, *command], cwd=suite.parent, check=True, capture_output=True)
    return suite


BODIES: dict[str, Callable[[Path], Any]] = {
    "evaluate": lambda suite: evaluate.run(str(suite)),
    "nightly": lambda suite: nightly.run(folder=str(suite.parent)),
    "after_ingest": lambda suite: after_ingest.run(str(suite), batch="evening", ids="", path=""),
    "pull_request": lambda suite: pull_request.run(str(suite), "main"),
    "promote": lambda suite: promote.run(str(suite)),
}
"""Each body with the parameters that its deployment, its event or whoever starts it gives, and no more."""


def test_flows_keep_their_things_where_commands_of_their_environment_do(
    faq: Path, tmp_path: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, body in BODIES.items():
        before = len(list((tmp_path / "kept").rglob("*")))
        assert body(faq).exit_code == 0
        # An ingest that changed nothing has nothing to keep.
        assert name == "after_ingest" or len(list((tmp_path / "kept").rglob("*"))) > before, name
        assert {path.name for path in tmp_path.iterdir()} == {"repo", "kept"}, name
        assert not (faq.parent / ".kbgate").exists(), name
    first, second = promote.run(str(faq)).served, promote.run(str(faq)).served
    capsys.readouterr()
    assert kbgate("status", faq) == 0
    assert f"served: {second}" in capsys.readouterr().out
    assert kbgate("rollback", faq) == 0
    assert f"{first} is served" in capsys.readouterr().out


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda deployment: deployment["name"])
def test_no_deployment_has_a_home_of_its_own(deployment: dict[str, Any]) -> None:
    module = importlib.import_module(deployment["entrypoint"].rpartition(".")[0])
    assert inspect.signature(module.run).parameters["home"].default == ""
    told = [deployment.get("parameters", {}), *(trigger["parameters"] for trigger in deployment.get("triggers", []))]
    assert not any("home" in parameters for parameters in told)


@pytest.mark.parametrize(
    ("given", "variable", "home"),
    [
        ("", None, ".kbgate"), ("", "", ".kbgate"), ("", " ", ".kbgate"), ("", "/srv/kept\n", "/srv/kept"),
        ("own", "/srv/kept", "own"), ("", "~/kept", str(Path.home() / "kept")),
    ],
)  # fmt: skip
def test_home_is_what_is_given_then_the_variable_then_a_folder_here(
    given: str, variable: str | None, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KBGATE_HOME") if variable is None else monkeypatch.setenv("KBGATE_HOME", variable)
    assert str(door.home_of(given)) == home


# ------------------------------------------------------------------ the clock


@pytest.fixture
def dated(faq: Path, kbgate: CLI) -> Path:
    """The small suite again: all its cards expire, and the day on which validity is judged is pinned before that."""
    edit_lines(faq / "cards.jsonl", lambda card: {**card, "valid_until": "2026-06-30T12:00:00+02:00"})
    edit_text(faq / "suite.toml", "top_k = 1", "top_k = 1\nas_of = 2026-06-01")
    assert kbgate("baseline", "update", faq, "--reason", "they expire") == 0
    return faq


def at(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Let it be this moment, UTC."""
    monkeypatch.setattr(door, "now", lambda: dt.datetime.fromisoformat(moment).replace(tzinfo=dt.UTC))


def test_what_a_pinned_day_hides_is_told_and_neither_promoted_nor_taken_for_ingested(
    dated: Path, kbgate: CLI, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    at(monkeypatch, "2026-06-30T10:00:01")
    capsys.readouterr()
    assert kbgate("evaluate", dated) == 0
    told = "validity was judged on 2026-06-01, which as_of pins, not on 2026-06-30; 3 cards differ by it: badge, leave, vpn"
    assert f"advisory: {told}" in capsys.readouterr().err
    verdict, report = last_verdict(tmp_path / "kept", "faq"), last_report(tmp_path / "kept", "faq")
    assert (verdict["verdict"], verdict["as_of"], verdict["valid_at"]) == ("PASS", "2026-06-01", "2026-06-01T00:00:00+00:00")
    assert report.startswith("# PASS: no question lost its answer")
    assert "which as\\_of pins" in report
    file = run_named(tmp_path / "kept", verdict["run"], "faq") / "verdict.json"
    fingerprint = verdict["fingerprints"]["index"]
    assert kbgate("gate", dated, "--verdict", file, "--index-fingerprint", fingerprint) == 1
    assert "validity was judged on 2026-06-01, not on 2026-06-30; next: kbgate evaluate" in capsys.readouterr().err

    assert promote.run(str(dated)).exit_code == 1
    assert kbgate("status", dated) == 0
    assert "nothing is served" in capsys.readouterr().out
    assert after_ingest.run(str(dated)).exit_code == 1
    assert kbgate("evaluate", dated, "--now") == 1
    assert last_verdict(tmp_path / "kept", "faq")["valid_at"] == "2026-06-30T10:00:01+00:00"


def test_a_card_is_promoted_until_the_second_it_expires(
    dated: Path, kbgate: CLI, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    at(monkeypatch, "2026-06-30T10:00:00")
    served = promote.run(str(dated)).served
    verdict = last_verdict(tmp_path / "kept", "faq")
    assert (verdict["time"], verdict["valid_at"]) == ("2026-06-30T10:00:00+00:00",) * 2
    assert not any(reason["check"] == "pinned_day" for reason in verdict["reasons"])
    file = run_named(tmp_path / "kept", verdict["run"], "faq") / "verdict.json"
    assert kbgate("gate", dated, "--verdict", file, "--index-fingerprint", verdict["fingerprints"]["index"]) == 0
    at(monkeypatch, "2026-06-30T10:00:01")
    late = promote.run(str(dated))
    assert (late.exit_code, late.served) == (1, served)


@pytest.mark.slow
def test_the_bundled_suite_passes_in_years_to_come(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, "2089-07-01T02:30:00")
    evaluation = evaluate.run(str(MEDICATION), home=str(home), at_now=True)
    told = [reason.check for reason in evaluation.verdict.reasons if reason.level != "advisory"]
    assert (evaluation.name, told) == ("WARN", ["unseen_gold"]), evaluation.summary  # one of its askers may see no gold


def test_the_clock_is_whole_seconds_of_utc() -> None:
    before, now, after = dt.datetime.now(dt.UTC), door.now(), dt.datetime.now(dt.UTC)
    assert before - dt.timedelta(seconds=1) < now <= after
    assert (now.microsecond, now.utcoffset()) == (0, dt.timedelta())


# ------------------------------------------------------------------ the step summary


@pytest.mark.parametrize("place", ["missing/summary.md", "."])
def test_a_step_summary_that_cannot_be_written_takes_no_verdict(
    faq: Path, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", place)
    result = pull_request.run(str(faq), "main")
    assert result.exit_code == 0
    assert f"the step summary {place} cannot be written" in capsys.readouterr().err
    assert (result.deciding.folder / "comment.md").exists()
