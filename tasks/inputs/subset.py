"""The pull-request subset: a small part of the golden set that looks like the whole."""

from __future__ import annotations

import hashlib
from collections import Counter

from kbgate.tasks.domain import Case, Cases

Stratum = tuple[str, ...]


def select_fast(cases: Cases, places: int) -> Cases:
    """The subset, stratified by kind and language (and topic while strata stay few), canaries always in.

    Who is chosen depends on case ids alone, so it does not move when other cases are edited. Places are shared out in
    proportion, the largest remainders first, and every stratum has at least one while places last.
    """
    canaries = {case.id for case in cases.values() if case.canary}
    rest = [case for case in cases.values() if not case.canary]
    places = max(places - len(canaries), 0)
    if len(rest) <= places:
        return cases
    strata = _strata(rest, places)
    left = _shares(Counter(strata.values()), places, len(rest))
    chosen = set(canaries)
    for case in sorted(rest, key=lambda case: hashlib.sha256(case.id.encode()).digest()):
        if left[strata[case.id]] > 0:
            left[strata[case.id]] -= 1
            chosen.add(case.id)
    return {name: case for name, case in cases.items() if name in chosen}


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
