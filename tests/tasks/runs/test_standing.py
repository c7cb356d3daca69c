"""A verdict stands only where an exam now could come to no other: every way in which it could is an exam."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbgate.flows import after_ingest, door, evaluate
from kbgate.tasks import exam
from kbgate.tasks.baseline.files import write_baseline
from kbgate.tasks.clock import Clock
from kbgate.tasks.conclusions import Evaluation, VerdictName
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.outcomes import Judgement
from kbgate.tasks.runs.document import VerdictDocument
from kbgate.tasks.runs.runfiles import seal_of, text_of
from kbgate.tasks.runs.standing import already_judged
from tests.conftest import edit_lines, edit_text, runs_in, write_lines

DAY = dt.datetime(2026, 6, 1, 2, 30, tzinfo=dt.UTC)
SETTINGS = """name = "faq"
top_k = 1
k_values = [1]
[kb]
on_bad_card = "reject"
[retrieval]
method = "bm25"
[gates]
contract = {tolerance = 0.9}
[[allow]]
case = "q-leave"
check = "newly_failing"
reason = "its page is being written"
until = 2026-06-03
[baseline]
max_age_days = 90
"""


class Site:
    """A small suite that ranks by words, accepted and then judged, on a day of ours."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch):
        self.suite, self.home, self._patch = folder / "faq", folder / "home", monkeypatch
        self.at(DAY)

    def begin(self) -> None:
        self.suite.mkdir()
        (self.suite / "suite.toml").write_text(SETTINGS)
        words = ("vpn", "leave", "badge")
        cards = [{"id": word, "text": f"All there is to know of the {word}."} for word in words]
        write_lines(self.suite / "cards.jsonl", [*cards, {"id": "old", "text": "A rule.", "valid_until": "2026-06-04"}])
        write_lines(
            self.suite / "golden.jsonl", [{"id": f"q-{word}", "query": word, "must_cite_one_of": [word]} for word in words]
        )
        # A repository of its own: a copy of the whole site is the same suite, from its root.
        subprocess.run(["git", "init", "-q", str(self.suite.parent)], check=True)
        self.accept("first")
        self.judge()

    def at(self, moment: dt.datetime) -> None:
        self._patch.setattr(door, "now", lambda: moment)

    def accept(self, reason: str) -> None:
        write_baseline(evaluate.run(str(self.suite), home=str(self.home)), reason, accept_regression=False)

    def judge(self, **options: Any) -> Evaluation:
        return evaluate.run(str(self.suite), home=str(self.home), **options)

    def ingested(self, ids: str = "") -> Evaluation | Judgement:
        return after_ingest.run(str(self.suite), ids=ids, home=str(self.home))

    def standing(self, now: dt.datetime = DAY) -> Judgement | None:
        inputs = exam.load(load_suite(self.suite), self.home)
        material = exam.prepare(inputs, self.home)
        return already_judged(inputs, material, exam.fingerprints_of(inputs, material), Clock.at(now), self.home)

    @property
    def run(self) -> Path:
        return runs_in(self.home, "faq")[-1]

    def rewrite(self, **changes: Any) -> None:
        """Edit the last verdict, and make its seal fit."""
        content = json.loads((self.run / "verdict.json").read_text())
        kept = {name: value for name, value in {**content, **changes}.items() if value != "gone"}
        document = VerdictDocument.of(kept)
        (self.run / "verdict.json").write_text(text_of(document.model_copy(update={"seal": seal_of(document)})))


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site that was judged once."""
    folder = tmp_path_factory.mktemp("judged")
    with pytest.MonkeyPatch.context() as monkeypatch:
        Site(folder, monkeypatch).begin()
    return folder


@pytest.fixture
def site(judged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A copy of it, somewhere else."""
    shutil.copytree(judged, tmp_path / "site")
    return Site(tmp_path / "site", monkeypatch)


def test_exactly_the_same_is_already_judged(site: Site) -> None:
    assert site.standing() == Judgement(site.run.name, VerdictName.PASS, 0)
    # A fast run in between says nothing of the full set; a folder typed otherwise is the same folder.
    site.judge(fast=True)
    full = site.standing()
    assert full is not None
    assert full.run != site.run.name
    assert site.standing(DAY + dt.timedelta(days=2)) == full  # nothing has ended yet


def test_a_red_verdict_stands_too(site: Site) -> None:
    edit_lines(site.suite / "cards.jsonl", lambda card: None if card["id"] == "vpn" else card)
    first, again = site.ingested(), site.ingested()
    assert isinstance(first, Evaluation)
    assert again == Judgement(first.run_id, VerdictName.BLOCK, 1)


def other_versions(site: Site) -> None:
    site._patch.setattr("kbgate.tasks.index.provenance.version", lambda package: "another")


def a_line_that_was_bad(site: Site) -> None:
    lines = (site.suite / "cards.jsonl").read_text()
    (site.suite / "cards.jsonl").write_text(lines + '{"id": "bad"}\n')
    assert site.judge().name == "BLOCK"
    (site.suite / "cards.jsonl").write_text(lines)


def a_bad_line(site: Site) -> None:
    with (site.suite / "cards.jsonl").open("a") as file:
        file.write('{"id": "bad"}\n')


def green_by_hand(site: Site) -> None:
    """A red run of what is there now, made green with a seal that fits."""
    edit_lines(site.suite / "cards.jsonl", lambda card: None if card["id"] == "vpn" else card)
    assert site.judge().name == "BLOCK"
    site.rewrite(verdict="PASS", exit_code=0, reasons=[], newly_failing=[])


def edited_rankings(site: Site) -> None:
    file = site.run / "run.parquet"
    file.write_bytes(file.read_bytes() + b" ")


def of_another_run(site: Site) -> None:
    site.rewrite(run="20260601T023000Z-000000")


WAYS: dict[str, Callable[[Site], object]] = {
    "a new card": lambda s: edit_lines(s.suite / "cards.jsonl", lambda c: {**c, "text": c["text"] + "!"}),
    "a new question": lambda s: edit_lines(s.suite / "golden.jsonl", lambda c: {**c, "query": c["query"] + "!"}),
    "another gate": lambda s: edit_text(s.suite / "suite.toml", "tolerance = 0.9", "tolerance = 0.8"),
    "another setting": lambda s: edit_text(s.suite / "suite.toml", "[retrieval]", "[chunking]\nsize = 200\n[retrieval]"),
    "another baseline": lambda s: s.accept("another"),
    "another version of a library": other_versions,
    "a bad line": a_bad_line,
    "a line that was bad": a_line_that_was_bad,
    "a verdict that is gone": lambda s: (s.run / "verdict.json").unlink(),
    "a verdict cut in half": lambda s: (s.run / "verdict.json").write_text('{"schema": 1'),
    "a verdict edited": lambda s: edit_text(s.run / "verdict.json", '"provisional": false', '"provisional": true'),
    "a verdict made green, its seal too": green_by_hand,
    "rankings edited": edited_rankings,
    "rankings gone": lambda s: (s.run / "run.parquet").unlink(),
    "a verdict of another run": of_another_run,
    "a verdict of another suite": lambda s: s.rewrite(suite="other"),
    "a verdict that does not say when cards had to be valid": lambda s: s.rewrite(valid_at="gone"),
    "a verdict of cards that were valid then": lambda s: s.rewrite(valid_at="2026-06-05T00:00:00+00:00"),
    "cards that were announced then": lambda s: s.ingested("vpn"),
    "a key that this verdict was not made with": lambda s: s._patch.setenv("KBGATE_KEY", "k" * 32),
    "no history": lambda s: shutil.rmtree(s.home / "history"),
}


@pytest.mark.parametrize("way", WAYS)
def test_whatever_differs_is_missing_or_cannot_be_read_is_an_exam(way: str, site: Site) -> None:
    assert site.standing() is not None
    WAYS[way](site)
    assert site.standing() is None


def test_cards_that_an_ingest_announces_are_looked_for(site: Site) -> None:
    assert isinstance(site.ingested(), Judgement)
    missing = site.ingested("vpn,lost")
    assert isinstance(missing, Evaluation)
    assert missing.name == "BLOCK"
    assert isinstance(site.ingested("lost, vpn"), Judgement)
    assert isinstance(site.ingested("vpn"), Evaluation)


def test_an_exception_that_ended_is_an_exam_and_no_longer_green(site: Site) -> None:
    edit_lines(site.suite / "cards.jsonl", lambda c: {**c, "text": "Under construction."} if c["id"] == "leave" else c)
    assert site.ingested().exit_code == 0
    site.at(DAY + dt.timedelta(days=2))  # its last day
    assert isinstance(site.ingested(), Judgement)
    site.at(DAY + dt.timedelta(days=3))
    ended = site.ingested()
    assert isinstance(ended, Evaluation)
    assert (ended.name, ended.exit_code) == ("BLOCK", 1)
    assert ended.name == site.judge().name


def test_a_baseline_that_grew_too_old_and_a_card_that_expired_are_an_exam(site: Site) -> None:
    edit_text(site.suite / "suite.toml", SETTINGS[SETTINGS.index("[[allow]]") : SETTINGS.index("[baseline]")], "")
    site.accept("nothing allowed")
    edit_lines(site.suite / "cards.jsonl", lambda card: {**card, "text": card["text"] + " "})
    site.judge()
    last = dt.datetime(2026, 6, 4, 23, 59, 59, tzinfo=dt.UTC)
    assert site.standing(last) is not None
    assert site.standing(last + dt.timedelta(seconds=1)) is None  # a card expired
    site.at(last + dt.timedelta(seconds=1))
    site.judge()
    assert site.standing(DAY + dt.timedelta(days=90)) is not None
    assert site.standing(DAY + dt.timedelta(days=91)) is None  # the baseline is too old
    site.at(DAY + dt.timedelta(days=91))
    assert site.ingested().name == "WARN"


def test_a_day_that_is_pinned_does_not_matter_where_the_same_cards_are_valid(site: Site) -> None:
    edit_text(site.suite / "suite.toml", "top_k = 1", "top_k = 1\nas_of = 2026-01-01")
    pinned = site.judge()
    assert pinned.as_of == dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    assert site.ingested() == Judgement(pinned.run_id, VerdictName.PASS, 0)
    assert dataclasses.replace(Clock.at(DAY), as_of=pinned.as_of) == Clock.of(load_suite(site.suite), DAY)
