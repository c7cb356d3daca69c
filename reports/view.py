"""One evaluation as the words and rows a report prints. Selects and orders; computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kbgate.tasks.comparison.power import smallness
from kbgate.tasks.comparison.supply import supply
from kbgate.tasks.conclusions import Evaluation, Reason
from kbgate.tasks.gate.opening import opening
from kbgate.tasks.metrics import figure_of
from kbgate.tasks.results import Change, ChangeKind
from kbgate.tasks.runs.document import VerdictDocument
from kbgate.tasks.runs.parts import FigurePart
from kbgate.tasks.settings import GATED_COUNTS
from kbgate.tasks.tables import REFERENCE, Figure

_CHANGES = (
    (ChangeKind.NEWLY_FAILING, "Newly failing", "passed in the baseline, fails now"),
    (ChangeKind.FAILING_AS_IT_WAS, "Failing as it was asked", "edited; as the baseline words it, it passed and fails now"),
    (ChangeKind.SLIPPED, "Slipped", "just below the cut, inside the slack"),
    (ChangeKind.UNBASELINED_FAILING, "New and failing", "not in the baseline, fails"),
    (ChangeKind.ACCESS_WIDENED, "Access widened", "gold that was hidden from its asker is visible now"),
    (ChangeKind.NEWLY_PASSING, "Newly passing", "failed in the baseline, passes now"),
)
_ROWS = 100
"""Cases a table lists before it points to verdict.json."""
_SLICED = ("kind", "language", "attack", "intent")
"""What the report's own tables are cut by."""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A case that changed sides."""

    case: str
    query: str
    language: str
    marks: str
    """canary, tier-gold, edited: why it weighs more."""
    golds: tuple[tuple[str, str, str], ...]
    """(card, rank in the baseline, rank now)."""


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """The cases that changed in one way."""

    title: str
    meaning: str
    rows: tuple[ChangeRow, ...]
    total: int


@dataclass(frozen=True, slots=True)
class View:
    """What the templates see."""

    headline: str
    first: str
    supply: str
    small: str
    """That the suite is small; "" where it is not."""
    """Whether the base supplied the truth, so that one looks at the model."""
    reasons: tuple[Reason, ...]
    changes: tuple[ChangeTable, ...]
    figures: tuple[FigurePart, ...]
    """Gated or at the verdict's k, over all cases."""
    other_figures: tuple[FigurePart, ...]
    slices: tuple[tuple[str, tuple[FigurePart, ...]], ...]
    """By what, and one row per slice and metric."""
    moved: tuple[FigurePart, ...]
    """Slices whose headline figure dropped, worst first."""
    lanes: tuple[FigurePart, ...]
    tolerances: Mapping[str, str]
    fingerprints: tuple[tuple[str, str], ...]


def view(evaluation: Evaluation, document: VerdictDocument) -> View:
    """The view of one evaluation."""
    top_k = document.top_k
    figures = [row for row in document.figures if row.n]
    method = [row for row in figures if row.lane == document.method]
    at_k = [row for row in method if Figure.parse(row.metric).k in (None, top_k)]
    limits: dict[str, str] = {}
    for key, words in _limits(evaluation):
        limits[key] = f"{limits[key]}, {words}" if key in limits else words
    whole = [row for row in method if not row.slice]
    first = {row.metric for row in at_k} | set(limits)
    headline = {f"contract@{top_k}", f"ndcg@{top_k}", f"hit@{top_k}"}
    sliced = [row for row in at_k if row.slice and row.metric in headline]
    others = [row for row in figures if row.lane not in (document.method, REFERENCE)]
    return View(
        headline=document.verdict + (" (provisional: the full set decides)" if document.provisional else ""),
        first=opening(evaluation.exam, evaluation.verdict),
        supply=supply(evaluation.exam),
        small=smallness(evaluation.exam.golden),
        reasons=evaluation.verdict.reasons,
        changes=tuple(table for table in (_change_table(evaluation, *kind) for kind in _CHANGES) if table.total),
        figures=tuple(row for row in whole if row.metric in first),
        other_figures=tuple(row for row in whole if row.metric not in first),
        slices=tuple((by, tuple(row for row in sliced if row.slice.startswith(f"{by}="))) for by in _SLICED),
        moved=tuple(sorted((row for row in sliced if (row.delta or 0) < 0), key=lambda row: row.delta or 0)),
        lanes=tuple(row for row in others if row.metric in headline | {f"recall@{top_k}"}),
        tolerances=limits,
        fingerprints=tuple(document.fingerprints.model_dump().items()),
    )


def _limits(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """What each gated figure may do, in words."""
    suite, floors = evaluation.exam.suite, dict(evaluation.exam.suite.floors)
    yield "leakage", "none, ever (critical)"
    demands, k = suite.acceptance, suite.top_k
    if demands is not None:
        yield f"quality@{k}", f"≥ {demands.quality:g} ({demands.level})"
        yield f"failing@{k}", f"≤ {demands.failing_share:g} ({demands.level})"
        yield f"noisy@{k}", f"≤ {demands.noisy_share:g} ({demands.level if demands.calibrated else 'advisory'})"
    for name, gate in suite.gates.items():
        key = name if name in GATED_COUNTS else str(figure_of(name, suite))
        limits = (("tolerance", gate.tolerance), ("≥", gate.floor), ("≤", gate.ceiling))
        words = f"{', '.join(f'{word} {value:g}' for word, value in limits if value is not None)} ({gate.level})"
        extra = [floors.pop(given) for given in tuple(floors) if str(figure_of(given, suite)) == key]
        yield key, ", ".join((words, *(f"≥ {floor:g}" for floor in extra)))
    for name, floor in floors.items():
        yield str(figure_of(name, suite)), f"≥ {floor:g} (critical)"


def _change_table(evaluation: Evaluation, kind: ChangeKind, title: str, meaning: str) -> ChangeTable:
    changes = evaluation.exam.comparison.changed(kind)
    return ChangeTable(title, meaning, tuple(_change_row(change) for change in changes[:_ROWS]), len(changes))


def _change_row(change: Change) -> ChangeRow:
    marks = (("canary", change.canary), ("tier-gold", change.tier_gold), ("edited", change.edited))
    golds = sorted({*change.then, *change.now})
    ranks = tuple((card, _rank(change.then, card), _rank(change.now, card)) for card in golds)
    case = change.case
    return ChangeRow(case.id, case.query, case.language, ", ".join(word for word, is_set in marks if is_set), ranks)


def _rank(ranks: Mapping[str, int | None], card: str) -> str:
    if card not in ranks:
        return "–"
    return str(ranks[card]) if ranks[card] is not None else "not found"
