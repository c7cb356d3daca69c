"""What counts as red, as suite.toml writes it: its mistakes, and the fingerprint a verdict carries of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from kbgate.tasks.errors import Problem, did_you_mean
from kbgate.tasks.gate import CHECKS
from kbgate.tasks.index.fingerprint import LENGTH, plain
from kbgate.tasks.metrics import AGGREGATES, METRICS, cuts_of, figure_at, known, part_of
from kbgate.tasks.records import digest
from kbgate.tasks.retrieval import RETRIEVERS
from kbgate.tasks.settings import FILE, GATED_COUNTS, Gate, Suite
from kbgate.tasks.tables import Figure

ACCEPTED = ("quality", "failing", "noise", "noisy")
"""Metrics that [acceptance] judges."""


def policy_fingerprint(suite: Suite) -> str:
    """What counts as red: gates, k, unit, pass mark, method and its settings, versions of the metrics that are judged.

    A metric that nothing judges is in no policy: adding one leaves every verdict as it was.
    """
    method = RETRIEVERS[suite.retrieval.method]
    retrieval = plain(suite.retrieval)
    policy = {
        "gates": {name: plain(gate) for name, gate in suite.gates.items()},
        "floors": suite.floors,
        "slices": [plain(part) for part in suite.slices],
        "allowances": [plain(allow) for allow in suite.allowances],
        "acceptance": plain(suite.acceptance) if suite.acceptance else None,
        "k": [suite.top_k, list(suite.cuts)],
        "unit": suite.unit,
        "pass_mark": suite.pass_mark,
        "retrieval": {name: retrieval[name] for name in ("method", *method.settings)},
        "metrics": {name: part_of(Figure(name)).version for name in sorted(_judged(suite))},
    }
    if suite.kb.rejected_share:  # written where it is set: what is judged without it stays what it was
        policy["rejected_share"] = suite.kb.rejected_share
    return digest(policy, LENGTH)


def _judged(suite: Suite) -> set[str]:
    """The metrics that some line of the policy speaks of, and the contract, by which a case passes or fails."""
    lines = [*suite.gates, *suite.floors, *(part.metric for part in suite.slices), *(ACCEPTED if suite.acceptance else ())]
    return {name.partition("@")[0] for name in lines if name not in GATED_COUNTS} | {"contract", "leakage", "fidelity"}


def policy_mistakes(suite: Suite) -> Iterator[Problem]:
    """Everything wrong with [gates], [[slice]], [[allow]] and --floor that the schema alone cannot see."""
    for name, gate in suite.gates.items():
        yield from (Problem(FILE, 0, f"gates.{sentence}") for sentence in _gate_mistakes(name, gate, suite))
    for number, part in enumerate(suite.slices):
        yield from (Problem(FILE, 0, f"slice.{number}.metric{sentence}") for sentence in _slice_mistakes(part.metric, suite))
    excusable = [name for name, check in CHECKS.items() if check.excusable]
    for number, allow in enumerate(suite.allowances):
        if allow.check not in excusable:
            sentence = f"allow.{number}.check: {_not_among(allow.check, excusable)}"
            yield Problem(FILE, 0, sentence)
    for name, floor in suite.floors.items():
        yield from (Problem("--floor", 0, sentence) for sentence in _floor_mistakes(name, floor, suite))


def _not_among(name: str, names: Iterable[str]) -> str:
    return f"unknown '{name}'; {did_you_mean(name, names)}"


def _gate_mistakes(name: str, gate: Gate, suite: Suite) -> Iterator[str]:
    bare = name.partition("@")[0]
    if name in GATED_COUNTS:
        if gate.ceiling is None or gate.tolerance is not None or gate.floor is not None:
            yield f"{name}: takes a ceiling (a share of the cases), nothing else"
    elif not known(bare) or (bare in AGGREGATES and bare != name):
        yield f"{name}: {_not_among(name, [*METRICS, *AGGREGATES, *GATED_COUNTS])}"
    else:
        if bare in METRICS:
            yield from _cut_mistakes(name, suite)
        if gate.tolerance is not None and not part_of(Figure(bare)).stored:
            yield f"{name}: no baseline holds {bare}, so it has no tolerance; give a floor or a ceiling"
        elif gate.tolerance is not None and part_of(Figure(bare)).higher_is_better is None:
            yield f"{name}: more {bare} is neither better nor worse, so it has no tolerance; give a floor or a ceiling"
        if bare != name and bare in suite.gates and name == str(figure_at(part_of(Figure(bare)), suite.top_k)):
            yield f"{name}: is the figure of gates.{bare} too; write one line for it"
    if gate.rule != "point" and gate.tolerance is None:
        yield f"{name}.rule = '{gate.rule}': needs a tolerance to judge"
    for key, value in (("slack", gate.slack), ("slips", gate.slips)):
        if value is not None and name != "newly_failing":
            yield f"{name}.{key}: only newly_failing has it"


def _slice_mistakes(name: str, suite: Suite) -> Iterator[str]:
    bare = name.partition("@")[0]
    if bare not in METRICS:
        yield f": {_not_among(bare, METRICS)}"
        return
    yield from (f": {sentence}" for sentence in _cut_mistakes(name, suite))
    if not METRICS[bare].stored:
        yield f": no baseline holds {bare}, so it has no tolerance"
    elif METRICS[bare].higher_is_better is None:
        yield f": more {bare} is neither better nor worse, so it has no tolerance"


def _floor_mistakes(name: str, floor: float, suite: Suite) -> Iterator[str]:
    bare = name.partition("@")[0]
    if bare not in METRICS:
        yield f"unknown metric '{bare}'; {did_you_mean(bare, METRICS)}"
    else:
        yield from _cut_mistakes(name, suite)
    if not math.isfinite(floor):
        yield f"{name}: needs METRIC=NUMBER, found {floor}"


def _cut_mistakes(name: str, suite: Suite) -> Iterator[str]:
    """A cut-off that is no number, is not computed, or that the metric does not have."""
    bare, _, cut = name.partition("@")
    if not cut:
        return
    computed = cuts_of(METRICS[bare], suite)
    if not METRICS[bare].at_k:
        yield f"{name}: {bare} has no cut-off; write '{bare}'"
    elif not cut.isdecimal() or int(cut) not in computed:
        yield f"{name}: {cut} is none of the computed cut-offs {list(computed)}"
