"""What many failures have in common, and where to look first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from kbgate.tasks.domain import Exam
from kbgate.tasks.errors import named
from kbgate.tasks.findings import Finding, Pattern
from kbgate.tasks.index.fingerprint import pipeline_of
from kbgate.tasks.registry import METRICS
from kbgate.tasks.settings import EPSILON

LEAST = 3
"""Failures below which nothing is called a pattern."""
MOST = 0.8
"""Share of the failures that must have something in common, while at most half of all cases have it."""
RUNS, DECLINE = 5, 0.01
"""A decline is slow when so many runs in a row fell, by so much together, without one large step."""

Told = tuple[str, str, int, float]
"""Sentence, what to look at first, n, share of the failures."""
Rule = Callable[[Exam, Sequence[Finding], Sequence[Mapping[str, Any]]], Iterable[Told]]
_RULES: dict[str, Rule] = {}


def pattern(name: str) -> Callable[[Rule], Rule]:
    """Declare a pattern: a function of the exam, its findings and the suite's history that tells what it sees."""

    def declare(rule: Rule) -> Rule:
        _RULES[name] = rule
        return rule

    return declare


def patterns_of(exam: Exam, findings: Sequence[Finding], lines: Sequence[Mapping[str, Any]]) -> tuple[Pattern, ...]:
    """Every pattern that is there, the one that explains most first."""
    found = [Pattern(name, *told) for name, rule in _RULES.items() for told in rule(exam, findings, lines)]
    return tuple(sorted(found, key=lambda p: (-p.share, p.name, p.sentence)))


def _fallen(findings: Sequence[Finding]) -> set[str]:
    return {finding.case for finding in findings}


def _share_of(exam: Exam, fallen: set[str], has: pd.Series) -> tuple[int, float, float]:
    """How many of the fallen have it, their share, and the share of all asked cases that have it."""
    own = set(exam.asked.loc[has.to_numpy(bool), "id"])
    hit = len(fallen & own)
    return hit, hit / len(fallen), len(own) / len(exam.asked)


@pattern("domain")
def domain(exam: Exam, findings: Sequence[Finding], lines: Sequence[Mapping[str, Any]]) -> Iterable[Told]:
    """A whole domain fails."""
    fallen = _fallen(findings)
    of_case = dict(zip(exam.scores.placements["case"], exam.scores.placements["domains"], strict=True))
    for name in sorted({value for case in fallen for value in of_case.get(case, [])}):
        members = [case for case, names in of_case.items() if name in names]
        hit = len(fallen & set(members))
        if hit >= LEAST and hit >= MOST * len(members):
            yield f"{hit} of {len(members)} cases of domain '{name}' fell", "its ingest, and its labels", hit, hit / len(fallen)


def _feature(sentence: str, look: str, has: Callable[[Exam], pd.Series]) -> Rule:
    def rule(exam: Exam, findings: Sequence[Finding], lines: Sequence[Mapping[str, Any]]) -> Iterable[Told]:
        fallen = _fallen(findings)
        if len(fallen) < LEAST:
            return
        hit, share, overall = _share_of(exam, fallen, has(exam))
        if hit >= LEAST and share >= MOST and overall <= 0.5:
            yield f"{hit} of {len(fallen)} that fell {sentence}", look, hit, share

    return rule


_RULES["numeric"] = _feature(
    "ask for a number", "chunking of tables, and their descriptions", lambda exam: exam.asked["numeric"].astype(bool)
)
_RULES["tier_gold"] = _feature(
    "have a curated synthesis as gold",
    "whether what came lately buries the syntheses",
    lambda exam: exam.asked["id"].isin(exam.scores.placements.loc[exam.scores.placements["tier_gold"].astype(bool), "case"]),
)


@pattern("last_ingest")
def last_ingest(exam: Exam, findings: Sequence[Finding], lines: Sequence[Mapping[str, Any]]) -> Iterable[Told]:
    """Golds that did not change themselves fell behind what came in."""
    own = [finding for finding in findings if finding.cause == "displaced"]
    fallen, hit = _fallen(findings), _fallen(own)
    if len(hit) >= LEAST:
        culprits = list(dict.fromkeys(card for finding in own for card in finding.culprits))
        look = f"the last ingest: {named(culprits)}" if culprits else "the last ingest"
        yield f"{len(hit)} passed before and nothing changed in their cards", look, len(hit), len(hit) / len(fallen)


@pattern("generic")
def generic(exam: Exam, findings: Sequence[Finding], lines: Sequence[Mapping[str, Any]]) -> Iterable[Told]:
    """Answers are found, and much else with them."""
    figures = exam.comparison.figures
    own = figures[(figures["lane"] == exam.run.method) & (figures["slice"] == "")].set_index("metric")["delta"].dropna()
    recall, noise = METRICS["recall"].key(exam.suite.top_k), METRICS["noise"].key(exam.suite.top_k)
    if recall in own and noise in own and own[recall] > -EPSILON and own[noise] > 0.02:
        sentence = f"{recall} holds while {noise} rose by {own[noise]:.3f}"
        yield sentence, "descriptions that could stand on any card", len(exam.asked), 0.0


@pattern("decline")
def decline(exam: Exam, findings: Sequence[Finding], lines: Sequence[Mapping[str, Any]]) -> Iterable[Told]:
    """The mean fell a little in each of many runs."""
    key = METRICS["contract"].key(exam.suite.top_k)
    full = [line["means"][key]["mean"] for line in lines if line["mode"] == "full" and line["means"].get(key, {}).get("n")]
    last = [value for value in full if value is not None][-RUNS - 1 :]
    steps = [now - before for before, now in pairwise(last)]
    if len(steps) == RUNS and max(steps) <= EPSILON and sum(steps) < -DECLINE and min(steps) > 0.6 * sum(steps):
        sentence = f"{key} fell in {RUNS} runs one after the other, from {last[0]:.3f} to {last[-1]:.3f}"
        yield sentence, "cards that expire in silence, and sources that are no longer updated", RUNS, 0.0


@pattern("drift")
def drift(exam: Exam, findings: Sequence[Finding], lines: Sequence[Mapping[str, Any]]) -> Iterable[Told]:
    """Something fell although neither a card nor a setting changed."""
    baseline, fallen = exam.baseline, _fallen(findings)
    if baseline is None or not fallen:
        return
    now = dict(zip(exam.kb.cards["id"], exam.kb.cards["hash"], strict=True))
    then = baseline.summary["provenance"].get("pipeline")
    settled = then is None or then == pipeline_of(exam.suite)
    if settled and now == {card: row["hash"] for card, row in baseline.cards.items()}:
        unexplained = {finding.case for finding in findings if finding.cause in ("unknown", "lost_by_index", "validity")}
        look = "the day of validity, the index, the versions of libraries: no card changed since the baseline"
        if unexplained:
            yield f"{len(unexplained)} fell although no card changed", look, len(unexplained), len(unexplained) / len(fallen)
