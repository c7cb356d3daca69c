"""The pull-request subset: a small part of the golden set that looks like the whole."""

from __future__ import annotations

import hashlib
from collections import Counter

from kbgate.tasks.comparison.wordings import follow_renames
from kbgate.tasks.domain import Baseline, Case, Cases

Stratum = tuple[str, ...]


def select_fast(cases: Cases, places: int, baseline: Baseline | None) -> Cases:
    """The subset, stratified by kind and language (and topic while strata stay few), canaries always in.

    Its places are drawn from the cases the baseline accepted and that still are what they were; new and edited ones come on
    top, so that a change cannot fill the places with questions of its own. Who is chosen depends on the ids the cases were
    accepted under alone, so it does not move when other cases are edited or these are renamed. Places are shared out in
    proportion, the largest remainders first, and every stratum has at least one while places last. Where the places cannot
    be filled, the subset is the whole set.
    """
    accepted = _accepted(cases, baseline)
    pool = [case for case in cases.values() if case.id in accepted]
    canaries = {case.id for case in pool if case.canary}
    rest = [case for case in pool if not case.canary]
    left_over = max(places - len(canaries), 0)
    if len(rest) <= left_over or len(pool) < least_compared(places, baseline):
        return cases
    strata = _strata(rest, left_over)
    left = _shares(Counter(strata.values()), left_over, len(rest))
    chosen = canaries | (set(cases) - set(accepted))
    for case in sorted(rest, key=lambda case: hashlib.sha256(accepted[case.id].encode()).digest()):
        if left[strata[case.id]] > 0:
            left[strata[case.id]] -= 1
            chosen.add(case.id)
    return {name: case for name, case in cases.items() if name in chosen}


def least_compared(places: int, baseline: Baseline | None) -> int:
    """How many cases a subset has to compare with the baseline; with fewer it has said too little, and all are asked."""
    return min(places, len(baseline.cases)) if baseline else 0


def _accepted(cases: Cases, baseline: Baseline | None) -> dict[str, str]:
    """The ids under which unchanged cases were accepted; each case's own where there is no baseline."""
    if baseline is None:
        return {name: name for name in cases}
    rows = follow_renames(baseline, cases)
    return {name: rows[name].id for name, case in cases.items() if name in rows and rows[name].hash == case.hash}


def _strata(cases: list[Case], places: int) -> dict[str, Stratum]:
    """The stratum of each case: kind, language and topic, without the topic where that makes too many."""
    whole = {case.id: (case.kind, case.language, case.topic) for case in cases}
    if len(set(whole.values())) >= places / 2:
        return {name: key[:2] for name, key in whole.items()}
    return dict(whole)


def _shares(sizes: Counter[Stratum], places: int, total: int) -> dict[Stratum, int]:
    """How many places each stratum gets."""
    quota = {stratum: places * size / total for stratum, size in sizes.items()}
    shares = {stratum: max(1, int(share)) for stratum, share in quota.items()}
    while sum(shares.values()) < places:
        open_ = (stratum for stratum in sizes if shares[stratum] < sizes[stratum])
        shares[min(open_, key=lambda stratum: (shares[stratum] - quota[stratum], stratum))] += 1
    while sum(shares.values()) > places:
        shares[max(shares, key=lambda stratum: (shares[stratum] - quota[stratum], shares[stratum], stratum))] -= 1
    return shares
