"""A run beside its baseline: the cases both have, the mean of each figure over them, and every case that changed sides."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from kbgate.tasks.comparison.figures import lane_figures, method_figures
from kbgate.tasks.domain import Baseline, Comparison, Previous, Run, Scores
from kbgate.tasks.registry import METRICS, figure_keys
from kbgate.tasks.settings import EPSILON, Suite
from kbgate.tasks.tables import CHANGE_COLUMNS, FIGURE_COLUMNS, rows_of

MAX_CHANGED = 0.10
"""Share of the baseline's cases that may be edited or removed before the rest says too little."""


def compare(
    suite: Suite,
    golden: pd.DataFrame,
    asked: pd.DataFrame,
    run: Run,
    scores: Scores,
    baseline: Baseline | None,
    touched: tuple[str, ...] = (),
    previous: Previous | None = None,
) -> Comparison:
    """Hold a run against the baseline; without one, the figures stand alone.

    `golden`: every case; `asked`: those of this run's mode. Means are over the common population only; new, removed and
    edited cases are listed and never averaged in, nor are `touched` ones, asked beside the fast subset. `previous`: the run
    before; its means are told beside those of the same number of cases.
    """
    now = _by_case(scores.figures, run.method)
    if baseline is None:
        figures = [
            *method_figures(suite, run, scores, asked, now, {}, set(asked["id"]) - set(touched)),
            *lane_figures(run, scores, None),
        ]
        return Comparison(_table(figures, run.method, previous), _no_changes())
    hashes = dict(zip(golden["id"], golden["hash"], strict=True))
    baseline = _follow_renames(baseline, hashes)
    then = baseline.cases
    edited = tuple(sorted(c for c, h in hashes.items() if c in baseline.cases and baseline.cases[c]["hash"] != h))
    removed = tuple(sorted(set(baseline.cases) - set(hashes)))
    new = tuple(sorted(set(asked["id"]) - set(baseline.cases)))
    common = tuple(sorted(set(asked["id"]) - set(new) - set(edited)))
    unlike = tuple(_incomparable(suite, baseline))
    changed = len(edited) + len(removed)
    many: tuple[str, ...] = ()
    if changed > MAX_CHANGED * len(baseline.cases) + EPSILON:
        share = f"{changed} of the baseline's {len(baseline.cases)} cases"
        many = (f"{share} were edited or removed ({len(edited)} edited, {len(removed)} removed); 10 % are allowed",)
    figures = [
        *method_figures(suite, run, scores, asked, now, {} if unlike else then, set(common) - set(touched)),
        *lane_figures(run, scores, baseline if not unlike and set(common) == set(baseline.cases) == set(asked["id"]) else None),
    ]
    changes = [] if unlike else list(_changes(suite, asked, scores, now, baseline, edited))
    return Comparison(
        figures=_table(figures, run.method, previous),
        changes=pd.DataFrame(changes, columns=list(CHANGE_COLUMNS), dtype=object),
        common=common,
        new=new,
        removed=removed,
        edited=edited,
        incomparable=unlike + many,
    )


def _follow_renames(baseline: Baseline, hashes: Mapping[str, str]) -> Baseline:
    """The baseline with the rows of renamed cases under their new ids: another name makes no other case of it."""
    gone = {row["hash"]: case for case, row in baseline.cases.items() if case not in hashes}
    renamed = {gone[value]: case for case, value in hashes.items() if case not in baseline.cases and value in gone}
    rows = {renamed.get(case, case): row for case, row in baseline.cases.items()}
    return dataclasses.replace(baseline, cases=rows)


def _table(rows: list[tuple[Any, ...]], method: str, previous: Previous | None) -> pd.DataFrame:
    """The rows as `FIGURE_COLUMNS`, each of the method's own beside the previous run's mean of as many cases."""
    *columns, last = FIGURE_COLUMNS
    table = pd.DataFrame(rows, columns=columns)
    means = previous.means if previous else {}
    table[last] = [
        row["current"] - was["mean"]
        if (was := means.get(row["metric"])) and (row["lane"], row["slice"], row["n"]) == (method, "", was["n"])
        else float("nan")
        for row in rows_of(table)
    ]
    return table


def _no_changes() -> pd.DataFrame:
    return pd.DataFrame(columns=list(CHANGE_COLUMNS), dtype=object)


def _by_case(figures: pd.DataFrame, lane: str) -> dict[str, dict[str, float]]:
    own = figures[figures["lane"] == lane]
    found: dict[str, dict[str, float]] = {}
    for case, key, value in zip(own["case"], own["metric"], own["value"], strict=True):
        found.setdefault(case, {})[key] = value
    return found


def _incomparable(suite: Suite, baseline: Baseline) -> Iterator[str]:
    """What makes figures of the two mean different things."""
    was = baseline.summary
    for name, current in (("top_k", suite.top_k), ("unit", suite.unit)):
        if was[name] != current:
            yield f"{name} was {was[name]!r} in the baseline and is {current!r} now"
    for name, version in sorted(was["metric_versions"].items()):
        if name not in METRICS:
            yield f"metric {name} is in the baseline and is no longer computed"
        elif METRICS[name].version != version:
            yield f"metric {name} was version {version} in the baseline and is version {METRICS[name].version} now"
    for key in sorted(set(was["means"]) - set(figure_keys(suite))):
        if key.partition("@")[0] in METRICS:
            yield f"figure {key} is in the baseline and is no longer computed"


def _changes(
    suite: Suite,
    asked: pd.DataFrame,
    scores: Scores,
    now: Mapping[str, Mapping[str, float]],
    baseline: Baseline,
    edited: tuple[str, ...],
) -> Iterator[tuple[Any, ...]]:
    """Every case that passed and fails, failed and passes, or is new and fails."""
    key = METRICS["contract"].key(suite.top_k)
    cases = {case["id"]: case for case in rows_of(asked)}
    for place in rows_of(scores.placements):
        case, row = cases[place["case"]], baseline.cases.get(place["case"])
        was = row["scores"].get(key) if row else None
        value = now.get(case["id"], {}).get(key)
        tier_gold = bool(place["tier_gold"] or (row and row["tier_gold"]))
        if row is None:
            change = "unbaselined_failing" if value is not None and not _passes(suite, value) else ""
        elif was is None:
            # Its asker could see no gold then: if there is some to see now, access was widened.
            change = "access_widened" if value is not None and case["id"] not in edited else ""
        elif _passes(suite, was) and not _passes(suite, value or 0.0):
            slips = not (place["canary"] or tier_gold) and _passes(suite, _contract_at(place, suite.top_k + _slack(suite)))
            change = "slipped" if slips else "newly_failing"
        elif not _passes(suite, was) and _passes(suite, value or 0.0):
            change = "newly_passing"
        else:
            change = ""
        if change:
            ranks = row["gold_ranks"] if row else {}
            about = (case["query"], case["kind"], case["language"], case["id"] in edited)
            yield (case["id"], change, *about, place["canary"], tier_gold, ranks, place["ranks"])


def _passes(suite: Suite, contract: float) -> bool:
    return contract >= suite.pass_mark - EPSILON


def _slack(suite: Suite) -> int:
    gate = suite.gates.get("newly_failing")
    return 1 if gate is None or gate.slack is None else gate.slack


def _contract_at(place: Mapping[str, Any], k: int) -> float:
    """The contract a case would have with a few places more."""
    groups, ranks = place["groups"], place["ranks"]
    if not groups:
        return 0.0
    return sum(any((ranks.get(card) or k + 1) <= k for card in group) for group in groups) / len(groups)
