"""What many failures have in common, and where to look first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kbgate.tasks.conclusions import Exam
from kbgate.tasks.domain import Mode
from kbgate.tasks.errors import named
from kbgate.tasks.findings import Finding, Pattern
from kbgate.tasks.index.fingerprint import pipeline_of
from kbgate.tasks.runs.history import HistoryLine
from kbgate.tasks.tables import EPSILON, Figure

LEAST = 3
"""Failures below which nothing is called a pattern."""
MOST = 0.8
"""Share of the failures that must have something in common, while at most half of all cases have it."""
LOOSE = "descriptions that could stand on any card"
RUNS, DECLINE = 5, 0.01
"""A decline is slow when so many runs in a row fell, by so much together, without one large step."""


@dataclass(frozen=True, slots=True)
class Sign:
    """What one rule sees."""

    sentence: str
    look_first: str
    n: int
    share: float
    """Of the failures, how many it explains."""


Findings = Sequence[Finding]
History = Sequence[HistoryLine]
Rule = Callable[[Exam, Findings, History], Iterable[Sign]]
_RULES: dict[str, Rule] = {}


def pattern(name: str) -> Callable[[Rule], Rule]:
    """Declare a pattern: a function of the exam, its findings and the suite's history that yields what it sees."""

    def declare(rule: Rule) -> Rule:
        _RULES[name] = rule
        return rule

    return declare


def patterns_of(exam: Exam, findings: Findings, history: History) -> tuple[Pattern, ...]:
    """Every pattern that shows, the one that explains most first."""
    signs = [(name, sign) for name, rule in _RULES.items() for sign in rule(exam, findings, history)]
    patterns = [Pattern(name, sign.sentence, sign.look_first, sign.n, sign.share) for name, sign in signs]
    return tuple(sorted(patterns, key=lambda p: (-p.share, p.name, p.sentence)))


def _cases(findings: Findings) -> set[str]:
    return {finding.case for finding in findings}


@pattern("domain")
def domain(exam: Exam, findings: Findings, history: History) -> Iterable[Sign]:
    """A whole domain fails."""
    failures = _cases(findings)
    domains = {case: place.domains for case, place in exam.scores.placements.items()}
    for name in sorted({value for case in failures for value in domains.get(case, ())}):
        members = [case for case, names in domains.items() if name in names]
        hit = len(failures & set(members))
        if hit >= LEAST and hit >= MOST * len(members):
            sentence = f"{hit} of {len(members)} cases of domain '{name}' fell"
            yield Sign(sentence, "its ingest, and its labels", hit, hit / len(failures))


@pattern("numeric")
def numeric(exam: Exam, findings: Findings, history: History) -> Iterable[Sign]:
    """Only questions for numbers fail."""
    asking = {name for name, case in exam.asked.items() if case.numeric}
    return _common(exam, findings, asking, "ask for a number", "chunking of tables, and their descriptions")


@pattern("tier_gold")
def tier_gold(exam: Exam, findings: Findings, history: History) -> Iterable[Sign]:
    """Only questions fail whose gold is a curated synthesis."""
    of_syntheses = {name for name, place in exam.scores.placements.items() if place.tier_gold}
    look_first = "whether what came lately buries the syntheses"
    return _common(exam, findings, of_syntheses, "have a curated synthesis as gold", look_first)


def _common(exam: Exam, findings: Findings, cases: set[str], sentence: str, look_first: str) -> Iterable[Sign]:
    """That most failures are among some cases which at most half of all asked ones are among."""
    failures = _cases(findings)
    hit, overall = len(failures & cases), len(cases & set(exam.asked))
    if hit >= LEAST and hit >= MOST * len(failures) and overall <= 0.5 * len(exam.asked):
        yield Sign(f"{hit} of {len(failures)} that fell {sentence}", look_first, hit, hit / len(failures))


@pattern("last_ingest")
def last_ingest(exam: Exam, findings: Findings, history: History) -> Iterable[Sign]:
    """Golds that did not change themselves fell behind what came in: one question that passed before is enough."""
    contract, rows = str(Figure("contract", exam.suite.top_k)), exam.baseline.cases if exam.baseline else {}
    passed = {name for name, row in rows.items() if row.scores.get(contract, 0.0) >= exam.suite.pass_mark - EPSILON}
    displaced = [finding for finding in findings if finding.cause == "displaced" and finding.case in passed]
    failures, hit = _cases(findings), _cases(displaced)
    if hit:
        culprits = list(dict.fromkeys(card for finding in displaced for card in finding.culprits))
        look_first = f"the last ingest: {named(culprits)}" if culprits else "the last ingest"
        sentence = f"{len(hit)} passed before and nothing changed in their cards"
        yield Sign(sentence, look_first, len(hit), len(hit) / len(failures))


@pattern("generic")
def generic(exam: Exam, findings: Findings, history: History) -> Iterable[Sign]:
    """Answers are found, and much else with them."""
    stands = _noise_that_stands(exam)
    if stands:
        yield Sign(stands, LOOSE, len(exam.asked), 0.0)
        return
    recall, noise = (exam.comparison.figure(exam.run.method, Figure(name, exam.suite.top_k)) for name in ("recall", "noise"))
    if recall.delta is not None and noise.delta is not None and recall.delta > -EPSILON and noise.delta > 0.02:
        sentence = f"{recall.figure} holds while {noise.figure} rose by {noise.delta:.3f}"
        yield Sign(sentence, LOOSE, len(exam.asked), 0.0)


def _noise_that_stands(exam: Exam) -> str:
    """That the answers are found and too many of them among more noise than was calibrated, whatever the baseline had."""
    demands, scores = exam.suite.acceptance, exam.scores.of(exam.run.method)
    if demands is None or demands.calibrated is None:
        return ""
    failing, noisy = (list(scores[Figure(name, exam.suite.top_k)].values()) for name in ("failing", "noisy"))
    green = bool(failing) and sum(failing) <= demands.failing_share * len(failing) + EPSILON
    if not green or not noisy or sum(noisy) <= demands.noisy_share * len(noisy) + EPSILON:
        return ""
    found = f"{len(failing) - int(sum(failing))} of {len(failing)} questions find their answer"
    return f"{found}, {int(sum(noisy))} of {len(noisy)} among more noise than was calibrated"


@pattern("decline")
def decline(exam: Exam, findings: Findings, history: History) -> Iterable[Sign]:
    """The mean fell a little in each of many runs."""
    key = str(Figure("contract", exam.suite.top_k))
    means = [line.means[key] for line in history if line.mode == Mode.FULL and key in line.means]
    last = [mean.mean for mean in means if mean.n and mean.mean is not None][-RUNS - 1 :]
    steps = [now - before for before, now in pairwise(last)]
    if len(steps) == RUNS and max(steps) <= EPSILON and sum(steps) < -DECLINE and min(steps) > 0.6 * sum(steps):
        sentence = f"{key} fell in {RUNS} runs one after the other, from {last[0]:.3f} to {last[-1]:.3f}"
        yield Sign(sentence, "cards that expire in silence, and sources that are no longer updated", RUNS, 0.0)


@pattern("drift")
def drift(exam: Exam, findings: Findings, history: History) -> Iterable[Sign]:
    """Something fell although neither a card nor a setting changed."""
    baseline, failures = exam.baseline, _cases(findings)
    if baseline is None or not failures:
        return
    now = {name: card.hash for name, card in exam.kb.cards.items()}
    then = baseline.summary.provenance.pipeline
    settled = not then or then == pipeline_of(exam.suite)
    if settled and now == {name: card.hash for name, card in baseline.cards.items()}:
        unexplained = {finding.case for finding in findings if finding.cause in ("unknown", "lost_by_index", "validity")}
        look_first = "the day of validity, the index, the versions of libraries: no card changed since the baseline"
        if unexplained:
            share = len(unexplained) / len(failures)
            yield Sign(f"{len(unexplained)} fell although no card changed", look_first, len(unexplained), share)
