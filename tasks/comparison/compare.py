"""A run beside its baseline: the cases both have, the mean of each figure over them, and every case that changed sides."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from kbgate.tasks.clock import Clock
from kbgate.tasks.comparison.aggregates import aggregate_figures, of_today
from kbgate.tasks.comparison.anchored import since_anchor
from kbgate.tasks.comparison.figures import lane_figures, method_figures
from kbgate.tasks.comparison.scoring import score
from kbgate.tasks.comparison.wordings import earlier_wordings, follow_renames, lost_wordings
from kbgate.tasks.conclusions import Exam
from kbgate.tasks.domain import Baseline, Case, Cases, Inputs
from kbgate.tasks.findings import Causes
from kbgate.tasks.metrics import METRICS, figure_at, figures_of, known
from kbgate.tasks.results import Change, ChangeKind, Compared, Comparison, Earlier, Placement, Previous, Run, Scores
from kbgate.tasks.schema import BaselineCase
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import EPSILON, Figure

LABELS = ("topic", "cluster", "numeric", "attack", "intent")
"""What a case is sorted by, and found or not without."""
MAX_CHANGED = 0.10
"""Share of the baseline's cases that may be edited or removed before the rest says too little."""


def exam_of(
    inputs: Inputs,
    asked: Cases,
    run: Run,
    clock: Clock,
    *,
    touched: tuple[str, ...] = (),
    previous: Previous | None = None,
    causes: Causes | None = None,
    earlier: Run | None = None,
) -> Exam:
    """The exam that a run's rankings make, scored and held against the baseline.

    `earlier`: the rankings of what `earlier_wordings` names; a wording that has none there fails.
    """
    scores = score(inputs.suite, inputs.kb, asked, run, inputs.baseline)
    cases, reworded = inputs.golden.cases, _earlier(inputs, run, earlier)
    comparison = compare(inputs.suite, cases, asked, run, scores, inputs.baseline, touched, previous)
    return Exam(
        suite=inputs.suite,
        kb=inputs.kb,
        asked=asked,
        golden=cases,
        baseline=inputs.baseline,
        run=run,
        scores=scores,
        comparison=_beside_earlier(comparison, inputs, run, scores, reworded),
        clock=clock,
        vanished=inputs.vanished,
        touched=touched,
        announced=inputs.announced,
        previous=previous,
        causes=causes or Causes(),
        earlier=reworded,
    )


def _earlier(inputs: Inputs, run: Run, asked_again: Run | None) -> Earlier | None:
    """How the earlier wordings of edited cases fare; None where there are none to ask."""
    wordings = earlier_wordings(inputs.golden.cases, inputs.baseline, run.mode, inputs.judges_edits)
    if not wordings:
        return None
    answers = asked_again or dataclasses.replace(run, answers={}, lanes={})
    scores = score(inputs.suite, inputs.kb, wordings, answers)
    return Earlier(answers, scores, lost_wordings(wordings, inputs.kb), inputs.judges_edits)


def _beside_earlier(comparison: Comparison, inputs: Inputs, run: Run, scores: Scores, earlier: Earlier | None) -> Comparison:
    """The comparison with what edited cases lose as they were worded before: to the baseline, and to the anchor."""
    suite, golden, baseline = inputs.suite, inputs.golden.cases, inputs.baseline
    if baseline is None:
        return comparison
    changes = {change.case.id: change for change in comparison.changes}
    if earlier is not None and earlier.judged and not any(_incomparable(suite, baseline)):
        then = follow_renames(baseline, golden)
        for name in comparison.edited:
            before = _change_before(suite, golden[name], then[name], earlier)
            if before is not None and (name not in changes or changes[name].kind != ChangeKind.NEWLY_FAILING):
                changes[name] = before
    figures = comparison.figures
    if set(scores.placements) == set(golden):
        since = since_anchor(suite, golden, baseline, scores.of(run.method), earlier)
        figures = tuple(
            dataclasses.replace(row, since_anchor=since.get(row.figure))
            if (row.lane, row.slice) == (run.method, "") and row.figure.metric in METRICS
            else row
            for row in figures
        )
    return dataclasses.replace(comparison, figures=figures, changes=tuple(changes.values()))


def _change_before(suite: Suite, case: Case, row: BaselineCase, earlier: Earlier) -> Change | None:
    """How an edited case fares as the baseline words it: failing, slipped, or None; with where its gold stands then."""
    contract = figure_at(METRICS["contract"], suite.top_k)
    place = dataclasses.replace(earlier.scores.placements[row.hash], canary=row.canary)
    value = earlier.scores.of(earlier.run.method)[contract].get(row.hash)
    if row.hash in earlier.lost:
        value, place = 0.0, dataclasses.replace(place, ranks=dict.fromkeys(place.ranks))
    tier_gold = place.tier_gold or row.tier_gold
    kind = _kind(suite, place, row, value, contract, edited=True, tier_gold=tier_gold)
    if kind == ChangeKind.NEWLY_FAILING:
        kind = ChangeKind.FAILING_AS_IT_WAS
    elif kind != ChangeKind.SLIPPED:
        return None
    return Change(kind, case, True, row.canary, tier_gold, row.gold_ranks, place.ranks)


def compare(
    suite: Suite,
    golden: Cases,
    asked: Cases,
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
    if baseline is None:
        alone = _figures(suite, run, scores, asked, None, {}, set(asked) - set(touched))
        return Comparison(_beside_previous(alone, run.method, previous))
    then = follow_renames(baseline, golden)
    edited = _edited(golden, then)
    removed = tuple(sorted(set(then) - set(golden)))
    new = tuple(sorted(set(asked) - set(then)))
    common = tuple(sorted(set(asked) - set(new) - set(edited)))
    unlike = tuple(_incomparable(suite, baseline))
    rows, gone = ({}, []) if unlike else (then, [then[name] for name in removed])
    figures = _figures(suite, run, scores, asked, baseline, rows, set(common) - set(touched), gone)
    return Comparison(
        figures=_beside_previous(figures, run.method, previous),
        changes=() if unlike else tuple(_changes(suite, asked, run.method, scores, then, edited)),
        common=common,
        new=new,
        removed=removed,
        edited=edited,
        relabelled=dict(_relabelled(golden, then)),
        incomparable=unlike + _too_many(len(edited), len(removed), len(then)),
    )


def _figures(
    suite: Suite,
    run: Run,
    scores: Scores,
    asked: Cases,
    baseline: Baseline | None,
    then: Mapping[str, BaselineCase],
    population: set[str],
    gone: Sequence[BaselineCase] = (),
) -> list[Compared]:
    """The figures of the method, of the run as a whole and of the other lanes, which have the baseline's means alone."""
    anchored = of_today(baseline.summary, baseline.summary.anchor.aggregates) if baseline else {}
    whole = bool(then) and set(then) == set(asked) and not any(then[name].hash != case.hash for name, case in asked.items())
    return [
        *method_figures(suite, run, scores, asked, then, population, gone),
        *aggregate_figures(run, asked, scores.placements, then, population, anchored),
        *lane_figures(run, scores, baseline if whole else None),
    ]


def _relabelled(golden: Cases, then: Mapping[str, BaselineCase]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The cases that ask the same and stand elsewhere: each with the labels that differ from the baseline's."""
    for name in sorted(set(golden) & set(then)):
        case, row = golden[name], then[name]
        if case.hash != row.hash:
            continue
        changed = tuple(label for label in LABELS if getattr(case, label) != getattr(row, label))
        # A case alone in its cluster takes it along when it is renamed.
        alone = case.cluster == case.id and row.cluster == row.id
        changed = tuple(label for label in changed if not (label == "cluster" and alone))
        if changed:
            yield name, changed


def _too_many(edited: int, removed: int, accepted: int) -> tuple[str, ...]:
    """Why so many changed cases leave too little to compare; nothing where they do not."""
    if edited + removed <= MAX_CHANGED * accepted + EPSILON:
        return ()
    share = f"{edited + removed} of the baseline's {accepted} cases"
    return (f"{share} were edited or removed ({edited} edited, {removed} removed); 10 % are allowed",)


def _beside_previous(rows: list[Compared], method: str, previous: Previous | None) -> tuple[Compared, ...]:
    """The rows, each of the method's own beside the previous run's mean of as many cases."""
    means = previous.means if previous else {}

    def beside(row: Compared) -> Compared:
        was = means.get(str(row.figure))
        if was is None or row.current is None or (row.lane, row.slice, row.n) != (method, "", was.n):
            return row
        return dataclasses.replace(row, since_previous=row.current - was.mean)

    return tuple(beside(row) for row in rows)


def _incomparable(suite: Suite, baseline: Baseline) -> Iterator[str]:
    """What makes figures of the two mean different things."""
    was = baseline.summary
    for name, before, current in (("top_k", was.top_k, suite.top_k), ("unit", was.unit, suite.unit)):
        if before != current:
            yield f"{name} was {before!r} in the baseline and is {current!r} now"
    for name, version in sorted(was.metric_versions.items()):
        if not known(name):
            yield f"metric {name} is in the baseline and is no longer computed"
        elif name in METRICS and METRICS[name].version != version:  # what is no metric is made anew from the rows
            yield f"metric {name} was version {version} in the baseline and is version {METRICS[name].version} now"
    for key in sorted(set(was.means) - {str(figure) for figure in figures_of(suite)}):
        if key.partition("@")[0] in METRICS:
            yield f"figure {key} is in the baseline and is no longer computed"


def changes_of(
    suite: Suite, golden: Cases, asked: Cases, method: str, scores: Scores, baseline: Baseline
) -> tuple[Change, ...]:
    """Every case that passed and fails, failed and passes, or is new and fails; none where the two cannot be compared."""
    if any(_incomparable(suite, baseline)):
        return ()
    then = follow_renames(baseline, golden)
    return tuple(_changes(suite, asked, method, scores, then, _edited(golden, then)))


def _edited(golden: Cases, then: Mapping[str, BaselineCase]) -> tuple[str, ...]:
    """The cases that ask something else now, or want another answer."""
    return tuple(sorted(name for name, case in golden.items() if name in then and then[name].hash != case.hash))


def _changes(
    suite: Suite, asked: Cases, method: str, scores: Scores, then: Mapping[str, BaselineCase], edited: tuple[str, ...]
) -> Iterator[Change]:
    contract = figure_at(METRICS["contract"], suite.top_k)
    now = scores.of(method)[contract]
    for place in scores.placements.values():
        case, row = asked[place.case], then.get(place.case)
        tier_gold = place.tier_gold or (row is not None and row.tier_gold)
        kind = _kind(suite, place, row, now.get(case.id), contract, edited=case.id in edited, tier_gold=tier_gold)
        if kind is not None:
            ranks = row.gold_ranks if row else {}
            yield Change(kind, case, case.id in edited, place.canary, tier_gold, ranks, place.ranks)


def _kind(
    suite: Suite,
    place: Placement,
    row: BaselineCase | None,
    value: float | None,
    contract: Figure,
    *,
    edited: bool,
    tier_gold: bool,
) -> ChangeKind | None:
    """How a case changed sides; None where it did not. `value`: its contract now, None where it has none."""
    if row is None:
        return ChangeKind.UNBASELINED_FAILING if value is not None and not _passes(suite, value) else None
    was = row.scores.get(str(contract))
    if was is None:
        # Its asker could see no gold then: if there is some to see now, access was widened.
        return ChangeKind.ACCESS_WIDENED if value is not None and not edited else None
    passed = _passes(suite, was)
    if _passes(suite, value or 0.0):
        return None if passed else ChangeKind.NEWLY_PASSING
    if not (passed or row.slipped):
        return None
    # An accepted slip is still one, and the slack begins at k: from the accepted rank it would begin anew with each update.
    slips = not (place.canary or tier_gold) and _passes(suite, _contract_at(place, suite.top_k + _slack(suite)))
    return ChangeKind.SLIPPED if slips else ChangeKind.NEWLY_FAILING


def _passes(suite: Suite, contract: float) -> bool:
    return contract >= suite.pass_mark - EPSILON


def _slack(suite: Suite) -> int:
    gate = suite.gates.get("newly_failing")
    return 1 if gate is None or gate.slack is None else gate.slack


def _contract_at(place: Placement, k: int) -> float:
    """The contract a case would have with a few places more."""
    if not place.groups:
        return 0.0
    return sum(any((place.ranks.get(card) or k + 1) <= k for card in group) for group in place.groups) / len(place.groups)
