"""Exams made from rankings alone: no model, no store, but our own scoring, comparison, gate and baseline."""

from __future__ import annotations

import copy
import datetime as dt
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbgate.tasks.baseline.files import read_baseline, write_baseline
from kbgate.tasks.clock import Clock
from kbgate.tasks.comparison.compare import exam_of
from kbgate.tasks.comparison.wordings import earlier_wordings
from kbgate.tasks.conclusions import Evaluation, Exam, Verdict
from kbgate.tasks.domain import Baseline, Inputs, Mode, Outcome
from kbgate.tasks.gate.verdict import judge
from kbgate.tasks.inputs.cards import load_cards
from kbgate.tasks.inputs.checks import check_inputs
from kbgate.tasks.inputs.golden import load_golden
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.results import Answer, Run
from kbgate.tasks.retrieval import run_of
from kbgate.tasks.schema import Counts, Fingerprints, ModelIdentity, Provenance
from kbgate.tasks.tables import Hits
from tests.conftest import write_lines

CARDS = [f"c{n}" for n in range(12)]
Rankings = Mapping[str, Sequence[str] | str | Hits]
"""By case: card ids in rank order, an outcome such as "raised", or a ranking with scores of its own."""

DEFAULT = """
contract = {tolerance = 0.02}
newly_failing = {ceiling = 0, slack = 1}
unbaselined_failing = {ceiling = 0, level = "supporting"}
"""


def filler(*first: str) -> list[str]:
    """A whole ranking that begins with these cards."""
    return [*first, *(card for card in CARDS if card not in first)]


def run_by(rankings: Rankings, mode: Mode = Mode.FULL) -> Run:
    """A run of exact search that gave these rankings; an outcome in place of one stands for a question that failed."""
    answers, hits = {}, {}
    for name, ranking in rankings.items():
        if isinstance(ranking, Hits):
            answers[name], hits[name] = Answer(Outcome.ANSWERED, 1.0, len(CARDS)), ranking
            continue
        failed = isinstance(ranking, str)
        cards = () if isinstance(ranking, str) else ranking
        outcome = Outcome(ranking) if isinstance(ranking, str) else Outcome.ANSWERED if ranking else Outcome.EMPTY
        answers[name] = Answer(outcome, 1.0, len(CARDS), detail="boom" if failed else "")
        hits[name] = Hits.of((card, round(1 - rank / 100, 6)) for rank, card in enumerate(cards, start=1))
    return run_of("exact", answers, {"exact": hits}, mode)


class Desk:
    """A suite folder in which exams are set, judged and accepted."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.gates = DEFAULT
        self.settings = "top_k = 3\nk_values = [1, 3]\n"
        self.retrieval = 'method = "exact"\n'
        self.cards: list[dict[str, Any]] = [{"id": card, "text": card} for card in CARDS]
        self.cases: list[dict[str, Any]] = []
        self.today = dt.date(2026, 6, 1)
        self.earlier: Rankings = {}
        """What edited cases get as they were worded before, by case; those that are not here get nothing."""
        self.judges_edits = False
        """Whether exams are those of a pull request."""

    @property
    def clock(self) -> Clock:
        """Half past two in the night of today."""
        return Clock.at(dt.datetime.combine(self.today, dt.time(2, 30), dt.UTC))

    def copy(self, folder: Path) -> Desk:
        """The same desk in a folder of its own: what one test does to it, no other sees."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        other = Desk(folder)
        other.gates, other.settings, other.retrieval, other.today = self.gates, self.settings, self.retrieval, self.today
        other.cards, other.cases = copy.deepcopy((self.cards, self.cases))
        return other

    def case(self, name: str, gold: str = "c0", **fields: Any) -> None:
        """Add a case, or replace the one of that name."""
        self.cases = [c for c in self.cases if c["id"] != name]
        form = {} if "expected" in fields or fields.get("kind") == "no_match" else {"must_cite_one_of": [gold]}
        self.cases.append({"id": name, "query": f"{name}?", **form, **fields})

    def exam(self, rankings: Rankings, mode: str = "full", floors: dict[str, float] | None = None) -> Exam:
        """The exam of these rankings against the accepted baseline, if there is one."""
        write_lines(self.folder / "cards.jsonl", self.cards)
        write_lines(self.folder / "golden.jsonl", self.cases)
        gates = f"[gates]\n{self.gates}" if self.gates is not None else ""
        (self.folder / "suite.toml").write_text(f'name = "desk"\n{self.settings}\n[retrieval]\n{self.retrieval}{gates}')
        suite = load_suite(self.folder, floors)
        kb, golden, baseline = load_cards(suite), load_golden(suite), read_baseline(suite)
        vanished = check_inputs(suite, kb, golden, baseline)
        inputs = Inputs(suite, kb, golden, baseline, vanished, judges_edits=self.judges_edits)
        asked = {name: case for name, case in golden.cases.items() if mode == "full" or name in rankings}
        return exam_of(inputs, asked, run_by(rankings, Mode(mode)), self.clock, earlier=self._asked_again(inputs, Mode(mode)))

    def _asked_again(self, inputs: Inputs, mode: Mode) -> Run:
        """The run of the earlier wordings, each known by its question, which begins with the case's name."""
        wordings = earlier_wordings(inputs.golden.cases, inputs.baseline, mode, inputs.judges_edits)
        names = {wording: case.query.partition("?")[0] for wording, case in wordings.items()}
        return run_by({wording: self.earlier[name] for wording, name in names.items() if name in self.earlier}, mode)

    def judge(self, rankings: Rankings, mode: str = "full", floors: dict[str, float] | None = None) -> Verdict:
        return judge(self.exam(rankings, mode, floors))

    def evaluation(self, rankings: Rankings, mode: str = "full") -> Evaluation:
        exam = self.exam(rankings, mode)
        counts = Counts(cards=len(self.cards), chunks=12, rows=12, cases=len(self.cases))
        provenance = Provenance(model=ModelIdentity(name="m", weights="0" * 64), versions={"kbgate": "0"}, commit=None)
        mark = "f" * 16
        accepted = exam.baseline.fingerprint if exam.baseline else ""
        fingerprints = Fingerprints(index=mark, golden=mark, policy=mark, baseline=accepted)
        run = "20260601T023000Z-abcdef"
        folder = self.folder / "runs" / run
        build = f"desk-{mark}-{run}"
        return Evaluation(exam, judge(exam), run, build, folder, fingerprints, provenance, counts)

    def accept(self, rankings: Rankings, *, accept_regression: bool = False, anchor: bool = False) -> Baseline:
        return write_baseline(self.evaluation(rankings), "a reason", accept_regression, anchor)
