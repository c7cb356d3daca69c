"""Why did it fall? Each gold that fell is asked again under one change after the other, until one brings it back."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kbgate.tasks.conclusions import Exam
from kbgate.tasks.diagnosis.causes import CAUSES, Cause, Missing, in_order
from kbgate.tasks.diagnosis.causes.chunk_split import whole
from kbgate.tasks.diagnosis.causes.displaced import newcomers_above
from kbgate.tasks.diagnosis.causes.label import LIFTED
from kbgate.tasks.diagnosis.labels import doubts_of
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.diagnosis.patterns import patterns_of
from kbgate.tasks.diagnosis.variants import AS_IS
from kbgate.tasks.domain import Inputs, Material, Vanished
from kbgate.tasks.errors import named
from kbgate.tasks.findings import Diagnosis, Finding, Group
from kbgate.tasks.identity import identity_of
from kbgate.tasks.results import ChangeKind, Placement
from kbgate.tasks.runs.history import read_history
from kbgate.tasks.tables import EPSILON, Figure, Vectors

UNKNOWN = "unknown"
LIMIT = 200
"""Golds that are looked into in one run, where [acceptance] asks for no more."""
PATIENCE = 900.0
"""Seconds after which no further gold is looked into: a verdict must not wait for its reasons."""
_SHOWN = 3
"""Culprits of one cause that have a line each; more share one."""


def diagnose(
    exam: Exam, inputs: Inputs, material: Material, vectors: Vectors, as_of: dt.datetime, home: Path, limit: int = LIMIT
) -> Diagnosis:
    """Why each gold that fell is not where it was, and what the falls have in common.

    `vectors`: one per asked case. `limit`: golds to look into, beside those of failing cases where [acceptance] asks for the
    cause of each, however long that takes. Says nothing where nothing fell. What keeps it from looking is told; it makes no
    verdict lighter, and only [acceptance] asks for it.
    """
    try:
        return _diagnose(exam, Laboratory(inputs, material, exam.asked, vectors, as_of, home), limit)
    except Exception as error:
        return Diagnosis(trouble=f"{type(error).__name__}: {error}")


def _diagnose(exam: Exam, lab: Laboratory, limit: int) -> Diagnosis:
    lost, history = list(golds_that_fell(exam)), read_history(lab.home, identity_of(exam.suite).keys)
    owed = _failing(exam) if exam.suite.acceptance is not None else set()
    findings: list[Finding] = []
    ends = time.monotonic() + PATIENCE
    for missing in sorted(lost, key=lambda gold: gold.case not in owed):
        if missing.case not in owed and (len(findings) >= limit or time.monotonic() > ends):
            break
        findings.append(explain(missing, lab))
    return Diagnosis(
        tuple(findings),
        tuple(groups_of(findings)),
        patterns_of(exam, findings, history),
        len(lost) - len(findings),
        tuple(doubts_of(exam, lab, _failing(exam))),
    )


def golds_that_fell(exam: Exam) -> Iterator[Missing]:
    """The golds that stood in the top k and do not now, or that new cases lack.

    All that are missing, where there is no baseline or [acceptance] asks for the cause of each.
    """
    changes = exam.comparison.changed(ChangeKind.NEWLY_FAILING, ChangeKind.SLIPPED, ChangeKind.UNBASELINED_FAILING)
    looked_into = {change.case.id for change in changes}
    if exam.baseline is None or exam.suite.acceptance is not None:
        looked_into |= _failing(exam)
    vanished: dict[str, dict[str, Vanished]] = {}
    for gone in exam.vanished:
        vanished.setdefault(gone.case, {})[gone.card] = gone
    for place in exam.scores.placements.values():
        if place.outcome.measured:
            yield from _missing_of(exam, place, place.case in looked_into, vanished.get(place.case, {}))


def _missing_of(exam: Exam, place: Placement, looked_into: bool, vanished: dict[str, Vanished]) -> Iterator[Missing]:
    """The golds that one case lacks, each once: of its groups where it is looked into, and those that vanished."""
    row = exam.baseline.cases.get(place.case) if exam.baseline else None
    then, k = row.gold_ranks if row else {}, exam.suite.top_k
    stood = {card for card, rank in then.items() if rank is not None and rank <= k}
    groups = place.groups or tuple(frozenset([card]) for card in sorted(stood))
    named_already: set[str] = set()
    for group in groups if looked_into else ():
        ranks = {card: place.ranks.get(card) for card in group}
        if any(rank is not None and rank <= k for rank in ranks.values()):
            continue
        nearest = min(group, key=lambda card: (ranks[card] or len(exam.kb.cards) + 1, card))
        for card in sorted(group & stood) or [nearest]:
            named_already.add(card)
            yield Missing(place.case, card, then.get(card), ranks[card], card in stood)
    for card, gone in vanished.items():
        if card not in named_already:
            held = card in stood or bool(gone.excerpt)
            yield Missing(place.case, card, then.get(card), place.ranks.get(card), held, gone.excerpt)


def _failing(exam: Exam) -> set[str]:
    contracts = exam.scores.of(exam.run.method)[Figure("contract", exam.suite.top_k)]
    return {case for case, value in contracts.items() if value < exam.suite.pass_mark - EPSILON}


def explain(missing: Missing, lab: Laboratory) -> Finding:
    """The first cause that its counterfactual confirms, with the evidence in numbers; "unknown" where none does."""
    rank = lab.ask(missing.case).rank(missing.gold)
    is_in_reach = rank is not None and rank <= lab.suite.top_k
    for cause in in_order():
        explains_what_is_in_reach = cause.of_evidence if missing.excerpt else cause.lost_by_index
        if (is_in_reach and not explains_what_is_in_reach) or not _may_be(cause, missing, lab):
            continue
        confirmed = cause.look(missing, lab)
        if confirmed is not None:
            return _finding(
                missing, lab, confirmed.cause or cause.name, confirmed.sentence, confirmed.proven, confirmed.culprits
            )
    sentence = f"no single change brings '{missing.gold}' back"
    if missing.excerpt:
        sentence = f"the evidence no longer stands in '{missing.gold}'; what the card was {lab.not_kept}"
    return _finding(missing, lab, UNKNOWN, sentence, False, ())


def _may_be(cause: Cause, missing: Missing, lab: Laboratory) -> bool:
    """What was so in the baseline, when the gold stood in the top k, is no cause of its fall."""
    if not missing.stood or not cause.changed:
        return True
    sections = {name.split(".")[0] for name in lab.changed_settings}
    return bool(
        ("card" in cause.changed and lab.edit_matters(missing.case, missing.gold, bool(missing.excerpt)))
        or ("case" in cause.changed and lab.edited(missing.case))
        or sections & set(cause.changed)
    )


def _finding(missing: Missing, lab: Laboratory, cause: str, sentence: str, proven: bool, culprits: tuple[str, ...]) -> Finding:
    ranking, gold, k = lab.ask(missing.case), missing.gold, lab.suite.top_k
    now = ranking.rank(gold)
    evidence: dict[str, float | None] = {
        "rank now": missing.now,
        **({"rank at the baseline": missing.then} if lab.inputs.baseline else {}),
        "score": ranking.score(now) if now else None,
        f"score at rank {k}": ranking.score(k),
        "rank by exact search": now,
        "rank by BM25": ranking.words.rank(gold),
    }
    change = whole(missing, lab)
    if change is not AS_IS:
        evidence["rank as one chunk"] = lab.ask(missing.case, change).rank(gold)
    if lab.cases[missing.case].filter is not None or lab.cases[missing.case].entitled is not None:
        evidence["rank with the filter lifted"] = lab.ask(missing.case, lift=LIFTED).rank(gold)
    above = tuple((card, lab.cards[card].title) for card in newcomers_above(missing, lab))
    return Finding(missing.case, gold, cause, sentence, proven, culprits, evidence, above)


def groups_of(findings: Iterable[Finding]) -> Iterator[Group]:
    """Findings of one cause as few lines, the largest first."""
    by_cause: dict[str, list[Finding]] = {}
    for finding in findings:
        by_cause.setdefault(finding.cause, []).append(finding)
    for cause, of_cause in sorted(by_cause.items(), key=lambda item: (-len(item[1]), item[0])):
        lines = list(_by_culprit(of_cause))
        for culprit, part in lines[:_SHOWN]:
            yield _group(cause, part, [culprit] if culprit else [])
        rest = [finding for _, part in lines[_SHOWN:] for finding in part]
        if rest:
            yield _group(cause, rest, [culprit for culprit, _ in lines[_SHOWN:]])


def _group(cause: str, findings: Sequence[Finding], culprits: Sequence[str]) -> Group:
    cases = tuple(dict.fromkeys(finding.case for finding in findings))
    if culprits and cause != UNKNOWN and CAUSES[cause].verb:
        return Group(cause, f"{len(cases)} {CAUSES[cause].verb} {named(culprits)}", cases)
    summary = CAUSES[cause].summary.rstrip(".") if cause != UNKNOWN else "no single change brings the gold back"
    by = f": {named(culprits)}" if culprits else ""
    return Group(cause, f"{len(cases)} × {summary[0].lower()}{summary[1:]}{by}", cases)


def _by_culprit(findings: Sequence[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    """The culprit that explains most first, then the one that explains most of the rest."""
    left = list(findings)
    while left:
        counts = Counter(culprit for finding in left for culprit in dict.fromkeys(finding.culprits))
        if not counts:
            yield "", left
            return
        most = max(counts.values())
        culprit = min(name for name, count in counts.items() if count == most)
        part = [finding for finding in left if culprit in finding.culprits]
        yield culprit, part
        left = [finding for finding in left if culprit not in finding.culprits]
