"""One evaluation as the words and rows a report prints. Selects and orders; computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kbgate.tasks.domain import Evaluation
from kbgate.tasks.tables import rows_of

_CHANGES = (
    ("newly_failing", "Newly failing", "passed in the baseline, fails now"),
    ("slipped", "Slipped", "just below the cut, inside the slack"),
    ("unbaselined_failing", "New and failing", "not in the baseline, fails"),
    ("access_widened", "Access widened", "gold that was hidden from its asker is visible now"),
    ("newly_passing", "Newly passing", "failed in the baseline, passes now"),
)
_ROWS = 100
"""Cases a table lists before it points to verdict.json."""


@dataclass(frozen=True)
class Change:
    """A case that changed sides."""

    case: str
    query: str
    language: str
    marks: str
    """canary, tier-gold, edited: why it weighs more."""
    golds: tuple[tuple[str, str, str], ...]
    """(card, rank in the baseline, rank now)."""


@dataclass(frozen=True)
class ChangeTable:
    """The cases that changed in one way."""

    title: str
    meaning: str
    rows: tuple[Change, ...]
    total: int


@dataclass(frozen=True)
class View:
    """What the templates see."""

    headline: str
    first: str
    reasons: tuple[Any, ...]
    changes: tuple[ChangeTable, ...]
    figures: tuple[dict[str, Any], ...]
    """Gated or at the verdict's k, over all cases."""
    other_figures: tuple[dict[str, Any], ...]
    slices: tuple[tuple[str, tuple[dict[str, Any], ...]], ...]
    """By what, and one row per slice and metric."""
    moved: tuple[dict[str, Any], ...]
    """Slices whose headline figure fell, worst first."""
    lanes: tuple[dict[str, Any], ...]
    tolerances: Mapping[str, str]


def view(evaluation: Evaluation, document: dict[str, Any]) -> View:
    """The view of one evaluation."""
    top_k = document["top_k"]
    figures = [row for row in document["figures"] if row["n"]]
    own = [row for row in figures if row["lane"] == document["method"]]
    at_k = [row for row in own if row["metric"].endswith(f"@{top_k}") or "@" not in row["metric"]]
    limits = _limits(evaluation, {row["metric"] for row in document["figures"]})
    whole = [row for row in own if not row["slice"]]
    first = [row for row in whole if row in at_k or row["metric"] in limits]
    headline = {f"contract@{top_k}", f"ndcg@{top_k}", f"hit@{top_k}"}
    sliced = [row for row in at_k if row["slice"] and row["metric"] in headline]
    reasons = evaluation.verdict.reasons
    provisional = " (provisional: the full set decides)" if document["provisional"] else ""
    return View(
        headline=document["verdict"] + provisional,
        first=_first(evaluation),
        reasons=reasons,
        changes=tuple(table for table in (_change_table(evaluation, *kind) for kind in _CHANGES) if table.total),
        figures=tuple(first),
        other_figures=tuple(row for row in whole if row not in first),
        slices=tuple((by, tuple(row for row in sliced if row["slice"].startswith(f"{by}="))) for by in ("kind", "language")),
        moved=tuple(sorted((row for row in sliced if (row["delta"] or 0) < 0), key=lambda row: row["delta"])),
        lanes=tuple(
            row
            for row in figures
            if row["lane"] not in (document["method"], "reference") and row["metric"] in headline | {f"recall@{top_k}"}
        ),
        tolerances=limits,
    )


def _first(evaluation: Evaluation) -> str:
    """The gravest reason, or that nothing fell; and, on green, what so few cases could not have shown."""
    verdict, exam = evaluation.verdict, evaluation.exam
    said = verdict.reasons[0].sentence if verdict.reasons else "nothing fell beyond what is allowed"
    blind = exam.comparison.blind_spot(exam.run.method, f"contract@{exam.suite.top_k}")
    return f"{said}; {blind}" if blind and verdict.exit_code == 0 else said


def _limits(evaluation: Evaluation, known: set[str]) -> dict[str, str]:
    """What each gated figure may do, in words."""
    suite, words = evaluation.exam.suite, {"leakage": "none, ever (critical)"}
    for name, gate in suite.gates.items():
        key = name if name in known else f"{name}@{suite.top_k}"
        parts = [
            f"{word} {value:g}"
            for word, value in (("tolerance", gate.tolerance), ("≥", gate.floor), ("≤", gate.ceiling))
            if value is not None
        ]
        words[key] = f"{', '.join(parts)} ({gate.level})"
    for name, floor in suite.floors.items():
        key = name if name in known else f"{name}@{suite.top_k}"
        words[key] = f"{words[key]}, ≥ {floor:g}" if key in words else f"≥ {floor:g} (critical)"
    return words


def _change_table(evaluation: Evaluation, kind: str, title: str, meaning: str) -> ChangeTable:
    changes = evaluation.exam.comparison.changes
    rows = rows_of(changes[changes["change"] == kind])
    listed = []
    for row in rows[:_ROWS]:
        marks = [
            word
            for word, is_set in (("canary", row["canary"]), ("tier-gold", row["tier_gold"]), ("edited", row["edited"]))
            if is_set
        ]
        golds = sorted({*row["then"], *row["now"]})
        ranks = tuple((card, _rank(row["then"], card), _rank(row["now"], card)) for card in golds)
        listed.append(Change(row["case"], row["query"], row["language"], ", ".join(marks), ranks))
    return ChangeTable(title, meaning, tuple(listed), len(rows))


def _rank(ranks: Mapping[str, int | None], card: str) -> str:
    if card not in ranks:
        return "–"
    return str(ranks[card]) if ranks[card] is not None else "not found"
