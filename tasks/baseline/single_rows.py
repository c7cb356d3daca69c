"""Single cases accepted: their rows are replaced, and everything else of the baseline stays and goes on judging.

Each row says from which run it is, and who accepted it, when and why. Manifest, fingerprints, provenance and anchor are still
those of the last full update, which is also what clears these marks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence

from kbgate.tasks.baseline.files import refuse_incomplete, replace_files
from kbgate.tasks.baseline.rows import CaseRows, case_row, means, scores_by_case
from kbgate.tasks.comparison.aggregates import aggregates
from kbgate.tasks.comparison.anchored import reworded, worse
from kbgate.tasks.conclusions import Evaluation, Exam, Level
from kbgate.tasks.domain import Baseline
from kbgate.tasks.errors import InputError, Problem, Refused, did_you_mean
from kbgate.tasks.gate.gold_texts import NAME as GOLD_TEXT
from kbgate.tasks.gate.rules import NAME as UNMET_RULES
from kbgate.tasks.git import author
from kbgate.tasks.metrics import AGGREGATES, figure_of, part_of
from kbgate.tasks.results import ChangeKind
from kbgate.tasks.schema import AnchoredCase, BaselineCase, RowAcceptance
from kbgate.tasks.tables import EPSILON, Figure

OPTION = "--accept"


def accept_rows(evaluation: Evaluation, accepted: Sequence[str], reason: str) -> Baseline:
    """Replace the rows of these cases by what a full, complete run found; all of them, or none: `InputError` or `Refused`."""
    exam = evaluation.exam
    if not reason.strip():
        raise Refused("a row needs a reason; it stays in the file for whoever reviews it")
    if exam.baseline is None:
        raise Refused("there is no baseline whose rows could be replaced; accept a first one without --accept")
    _refuse_run(evaluation, accepted)
    _refuse_names(exam, exam.baseline, accepted)
    mark = RowAcceptance(
        run=evaluation.run_id,
        index=evaluation.fingerprints.index,
        on=evaluation.started.astimezone(dt.UTC).date(),
        by=author(exam.suite.folder),
        reason=reason.strip(),
    )
    scores = scores_by_case(exam)
    slipped = {change.case.id for change in exam.comparison.changed(ChangeKind.SLIPPED)}
    rows = dict(exam.baseline.cases)
    for name in accepted:
        row, old = case_row(exam, name, scores[name]), rows[name]
        kept = {"anchor": _anchor_beside(row, old), "slipped": name in slipped, "accepted": mark}
        rows[name] = row.model_copy(update=kept)
    _refuse_creep(exam, rows, exam.baseline.summary.anchor.removed)
    summary = exam.baseline.summary.model_copy(update={"means": means(rows), "aggregates": aggregates(rows)})
    return replace_files(exam.suite, summary, rows, exam.baseline.cards)


def _refuse_run(evaluation: Evaluation, accepted: Sequence[str]) -> None:
    """A row comes from a run that could have become the baseline but for what it lost."""
    exam = evaluation.exam
    refuse_incomplete(evaluation, "a row")
    if exam.comparison.incomparable:
        sentence = f"rows of this run are no rows of that baseline: {exam.comparison.incomparable[0]}"
        raise Refused(f"{sentence}; accept the whole run, or none of it")
    lost = sorted({vanished.case for vanished in exam.vanished} & set(accepted))
    if lost:
        raise Refused(f"a gold of '{lost[0]}' is gone from the knowledge base; give the case another gold, and then accept it")
    for reason in evaluation.verdict.reasons:
        if reason.check in (GOLD_TEXT, UNMET_RULES) and reason.level == Level.CRITICAL and {*reason.cases} & {*accepted}:
            raise Refused(f"{reason.sentence}; put it back, or give the case another gold or rule, and then accept it")


def _refuse_names(exam: Exam, baseline: Baseline, accepted: Sequence[str]) -> None:
    """Only what stands in the baseline and was asked can be replaced: every other name at once."""
    problems = []
    for name in accepted:
        if name not in baseline.cases:
            there = "is new since the baseline, and has no row yet: a full update brings it in" if name in exam.asked else (
                f"is no case of the baseline; {did_you_mean(name, baseline.cases)}"
            )  # fmt: skip
            problems.append(Problem(OPTION, 0, f"'{name}' {there}"))
        elif name not in exam.asked:
            problems.append(Problem(OPTION, 0, f"'{name}' is asked no more: a full update takes it out"))
    if problems:
        raise InputError(problems)


def _anchor_beside(row: BaselineCase, old: BaselineCase) -> AnchoredCase | None:
    """The anchor stays; where the row asks something else now, it says itself what was asked."""
    entry = old.anchor
    if entry is None or row.hash == old.hash:
        return entry
    return entry.model_copy(update={"asked": None if entry.hash == row.hash else entry.asked or old.asked})


def _refuse_creep(exam: Exam, rows: CaseRows, removed: Mapping[str, AnchoredCase]) -> None:
    """One row a day must not come to more than twice a tolerance since the anchor."""
    for name, gate in exam.suite.gates.items():
        figure = figure_of(name, exam.suite) if gate.tolerance is not None and gate.level != "advisory" else None
        if figure is None or gate.tolerance is None or figure.metric in AGGREGATES:
            continue
        part, key = part_of(figure), str(figure)
        worst = part.low if part.higher_is_better else part.high
        since = [
            *_gains(rows, figure, worst, reworded(exam.earlier, figure)),
            *(worst - entry.scores[key] for entry in removed.values() if key in entry.scores),
        ]
        if not since:
            continue
        gained = sum(since) / len(since)
        drop = -gained if part.higher_is_better else gained
        if drop > 2 * gate.tolerance + EPSILON:
            raise Refused(
                f"{name} would be {drop:.3f} worse than the anchor, twice its tolerance of {gate.tolerance:g} is allowed: "
                "single rows add up; to begin anew, knowingly: a full update with --anchor --accept-regression"
            )


def _gains(rows: CaseRows, figure: Figure, worst: float, before: Mapping[str, float]) -> Iterator[float]:
    """What each row gained since the anchor; a figure it has no longer counts as the worst.

    An edited one counts with the worse of its wordings; `before`: the figure by earlier wording.
    """
    part, key = part_of(figure), str(figure)
    for row in rows.values():
        if row.anchor is None or key not in row.anchor.scores:
            continue
        value = row.scores.get(key, worst)
        if row.anchor.hash != row.hash:
            value = worse(part, value, before.get(row.anchor.hash, worst))
        yield value - row.anchor.scores[key]
