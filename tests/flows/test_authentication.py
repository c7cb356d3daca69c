"""Who believes a written verdict asks whose it is: by a key where there is one, by recomputing it where there is none."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kbgate.tasks.errors import InputError, Refused
from kbgate.tasks.runs.document import VerdictDocument
from kbgate.tasks.runs.runfiles import digests_of, seal_of, text_of
from kbgate.tasks.runs.verification import read_unbroken
from tests.conftest import edit_lines, write_suite

CLI = Callable[..., int]
KEY = "correct horse battery staple"
TEXTS = ("take tablets with food", "no alcohol", "never drive tired", "keep vials cold", "leave a missed dose out")
UNSURE = "index fingerprint, build and time are not authenticated"


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite of words with a baseline, and two runs of it that passed, with and without a key."""
    from kbgate.flows.__main__ import run

    place = tmp_path_factory.mktemp("accepted")
    suite = write_suite(place / "words", "bm25", {f"c{n}": text for n, text in enumerate(TEXTS)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBGATE_HOME", str(place / "home"))
        assert run(["baseline", "update", str(suite), "--reason", "first"]) == 0
        for name, key in (("unkeyed", None), ("keyed", KEY)):
            before = set((place / "home" / "runs").glob("*/*"))
            if key:
                patch.setenv("KBGATE_KEY", key)
            assert run(["evaluate", str(suite)]) == 0
            (folder,) = set((place / "home" / "runs").glob("*/*")) - before
            shutil.copytree(folder, place / name)
    return place


@pytest.fixture
def suite(accepted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(accepted, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("KBGATE_HOME", str(tmp_path / "home"))
    return tmp_path / "words"


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBGATE_KEY", KEY)


def examined(suite: Path) -> Path:
    """The folder of a run that passed, with the key where one is set."""
    return suite.parent / ("keyed" if "KBGATE_KEY" in os.environ else "unkeyed")


def gate(suite: Path, folder: Path, kbgate: CLI) -> int:
    verdict = folder / "verdict.json"
    return kbgate("gate", suite, "--verdict", verdict, "--index-fingerprint", content(folder)["fingerprints"]["index"])


def content(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "verdict.json").read_text())
    return read


def edit(folder: Path, **changes: Any) -> None:
    """What whoever can write the run's folder can do without the key: new digests, a new seal, and the HMAC that was there."""
    document = VerdictDocument.of({**content(folder), **changes, "files": digests_of(folder)})
    (folder / "verdict.json").write_text(text_of(document.model_copy(update={"seal": seal_of(document)})))


# ------------------------------------------------------------------ with a key


@pytest.mark.usefixtures("keyed")
def test_a_verdict_carries_an_hmac_and_its_key_opens_the_door(
    suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = examined(suite)
    assert len(content(folder)["hmac"]) == 64
    capsys.readouterr()
    assert gate(suite, folder, kbgate) == 0
    said = capsys.readouterr().err
    assert "open: PASS" in said
    assert UNSURE not in said
    assert kbgate("verify", folder, "--suite", suite) == 0
    monkeypatch.setenv("KBGATE_KEY", KEY + ".")
    capsys.readouterr()
    assert gate(suite, folder, kbgate) == 1
    said = capsys.readouterr().err
    assert "its HMAC is not by this KBGATE_KEY" in said
    assert f"next: kbgate evaluate {suite}" in said
    assert kbgate("verify", folder, "--suite", suite) == 1
    with pytest.raises(Refused, match=r"its HMAC is not by this KBGATE_KEY; next: kbgate evaluate "):
        read_unbroken(folder)


def test_a_verdict_without_an_hmac_is_nobodys_to_who_has_a_key(
    suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = examined(suite)
    assert "hmac" not in content(folder)
    monkeypatch.setenv("KBGATE_KEY", KEY)
    assert gate(suite, folder, kbgate) == 1
    said = capsys.readouterr().err
    assert "it carries no HMAC, and KBGATE_KEY is set" in said
    assert f"next: kbgate evaluate {suite}" in said
    assert kbgate("verify", folder, "--suite", suite) == 1


def add(folder: Path, name: str) -> None:
    (folder / name).write_text("all is well\n")


EDITS: dict[str, Callable[[Path], None]] = {
    "a build": lambda folder: edit(folder, build="another"),
    "a time": lambda folder: edit(folder, time="2020-01-01T00:00:00+00:00"),
    "an index": lambda folder: edit(folder, fingerprints={**content(folder)["fingerprints"], "index": "0" * 16}),
    "nothing but the seal": lambda folder: edit(folder),
    "its HMAC": lambda folder: edit(folder, hmac="0" * 64),
    "a comment": lambda folder: add(folder, "comment.md"),
    "a review": lambda folder: add(folder, "label_review.csv"),
    "a report": lambda folder: add(folder, "report.md"),
    "a comment that is listed": lambda folder: (add(folder, "comment.md"), edit(folder))[1],
    "cards that are gone": lambda folder: (folder / "cards.parquet").unlink(),
}


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("name", EDITS)
def test_whatever_was_edited_the_key_does_not_vouch_for_it(name: str, suite: Path, kbgate: CLI) -> None:
    folder = examined(suite)
    read_unbroken(folder)
    before = (folder / "verdict.json").read_bytes()
    EDITS[name](folder)
    if name == "nothing but the seal":
        assert (folder / "verdict.json").read_bytes() == before
        return
    assert gate(suite, folder, kbgate) == 1
    with pytest.raises(Refused, match="is not as kbgate wrote it"):
        read_unbroken(folder)


@pytest.mark.usefixtures("keyed")
def test_a_verdict_that_was_carried_away_alone_is_ours_still(suite: Path, kbgate: CLI, tmp_path: Path) -> None:
    folder = examined(suite)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(folder / "verdict.json", tmp_path / "elsewhere")
    assert gate(suite, tmp_path / "elsewhere", kbgate) == 0


@pytest.mark.usefixtures("keyed")
def test_promotion_serves_no_build_whose_verdict_is_not_ours(suite: Path, kbgate: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    from kbgate.flows import promote

    assert kbgate("promote", suite) == 0
    served = [path.read_bytes() for path in sorted((suite.parent / "home" / "production").rglob("CURRENT"))]
    publish = promote.publish

    def meddle(evaluation: Any, home: Path) -> None:
        publish(evaluation, home)
        edit(evaluation.folder, provenance={**content(evaluation.folder)["provenance"], "settings": "other"})

    monkeypatch.setattr(promote, "publish", meddle)
    assert kbgate("promote", suite) == 1
    assert [path.read_bytes() for path in sorted((suite.parent / "home" / "production").rglob("CURRENT"))] == served


@pytest.mark.usefixtures("keyed")
def test_the_key_stands_in_no_file_and_no_sentence(suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]) -> None:
    folder = examined(suite)
    assert kbgate("promote", suite) == 0
    assert gate(suite, folder, kbgate) == 0
    edit(folder, build="another")
    assert gate(suite, folder, kbgate) == 1
    assert kbgate("--debug", "verify", folder / "nowhere") != 0
    said = "".join(capsys.readouterr())
    assert KEY not in said
    files = [path for path in suite.parent.rglob("*") if stat.S_ISREG(path.lstat().st_mode)]
    assert len(files) > 10
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize("door", ["command", "flow"])
def test_what_a_run_loads_finds_no_key_in_its_environment(
    door: str, suite: Path, kbgate: CLI, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kbgate.flows import evaluate
    from kbgate.flows.prefect import as_flow
    from kbgate.tasks import stages

    seen: list[bool] = []
    load = stages.load_suite
    monkeypatch.setattr(stages, "load_suite", lambda *given: (seen.append("KBGATE_KEY" in os.environ), load(*given))[1])
    if door == "command":
        assert kbgate("evaluate", suite) == 0
    else:
        monkeypatch.setattr("kbgate.flows.prefect._forget_retries", lambda: None)
        as_flow(evaluate.run, "evaluate").fn(str(suite))
    assert seen == [False]
    assert os.environ["KBGATE_KEY"] == KEY


@pytest.mark.usefixtures("keyed")
def test_flows_that_are_served_would_have_no_key_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from kbgate.flows.serve import serve_all

    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with pytest.raises(InputError, match="prefect worker start --pool kbgate"):
        serve_all("baselines")


# ------------------------------------------------------------------ without one


def edit_ranking(folder: Path) -> None:
    table = pd.read_parquet(folder / "scores.parquet")
    table["value"] = 1.0 - table["value"]
    table.to_parquet(folder / "scores.parquet", index=False)


@pytest.mark.parametrize("carried", [False, True])
def test_without_a_key_the_first_line_says_what_is_not_authenticated(
    carried: bool, suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("KBGATE_KEY", KEY)
        folder = examined(suite)
    if carried:
        for file in folder.iterdir():
            if file.name != "verdict.json":
                file.unlink()
    capsys.readouterr()
    assert gate(suite, folder, kbgate) == 0
    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith(UNSURE)
    assert first.endswith("KBGATE_KEY is not set") != carried
    assert ("nor are the figures recomputed" in first) == carried
    assert others[-1].startswith("open: PASS")


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda folder: edit(folder, top_k=2), "top_k says 2, is 1"),
        (lambda folder: edit(folder, cases={**content(folder)["cases"], "compared": 4}), "cases.compared says 4, is 5"),
        (lambda folder: (edit_ranking(folder), edit(folder))[1], "scores.parquet"),
        (lambda folder: add(folder, "comment.md"), "comment.md was not written by the run"),
        (lambda folder: (folder / "run.parquet").unlink(), "run.parquet is gone"),
    ],
)
def test_without_a_key_what_does_not_follow_from_the_rankings_opens_no_door(
    spoil: Callable[[Path], None], sentence: str, suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = examined(suite)
    spoil(folder)
    capsys.readouterr()
    assert gate(suite, folder, kbgate) == 1
    said = capsys.readouterr().err
    assert said.splitlines()[0].startswith(UNSURE)
    assert sentence in said
    assert f"next: kbgate evaluate {suite}" in said


def test_without_a_key_other_cards_than_the_runs_open_no_door(
    suite: Path, kbgate: CLI, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = examined(suite)
    edit_lines(suite / "cards.jsonl", lambda card: {**card, "title": "new"})
    assert gate(suite, folder, kbgate) == 2
    assert "its cards are not those of the run; check out what the run saw" in capsys.readouterr().err
