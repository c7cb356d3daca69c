"""Every case asked once: questions made from cases, answers checked, rankings kept as one run."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from kbgate.tasks.domain import Index, Outcome, Question, Ranked, Run
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.index.vectors import Vectors
from kbgate.tasks.predicates import both, in_store_values, valid_on
from kbgate.tasks.records import canonical
from kbgate.tasks.registry import RETRIEVERS, Retriever
from kbgate.tasks.retrieval.lanes import Eligible, Hits, fault
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import ANSWER_COLUMNS, HIT_COLUMNS, REFERENCE, rows_of


def questions_of(cases: pd.DataFrame, vectors: Vectors, day: dt.date) -> list[Question]:
    """One question per case: validity on `day`, `filter` and `entitled` joined into one predicate for the store."""
    questions = []
    for case, vector in zip(rows_of(cases), vectors, strict=True):
        extra = [in_store_values(case[name]) for name in ("filter", "entitled") if case[name] is not None]
        questions.append(Question(case["query"], case["language"], both(valid_on(day), *extra), vector))
    return questions


def retrieve(suite: Suite, index: Index, cases: pd.DataFrame, vectors: Vectors, day: dt.date, mode: str) -> Run:
    """Ask every case with the suite's method; hits in `HIT_COLUMNS`, one line per case in `ANSWER_COLUMNS`."""
    method = RETRIEVERS[suite.retrieval.method]
    questions = questions_of(cases, vectors, day)
    k = suite.cuts[-1]
    given = method.connect(index, suite)(questions, k)
    if len(given) != len(questions):
        raise Unmeasured(f"{method.name} answered {len(given)} of {len(questions)} questions")
    eligible, cards = Eligible(index), set(index.members["card"])
    answers = [
        _above(_checked(answer, method, eligible.cards(question.where or {}), cards, suite), method, suite)
        for answer, question in zip(given, questions, strict=True)
    ]
    exact, exact_ms = _references(method, index, suite, questions, answers)
    hits, lines = [], []
    rows = zip(cases["id"], questions, answers, exact, strict=True)
    for place, (case, question, answer, reference) in enumerate(rows):
        for lane, ranking in {**answer.lanes, **reference}.items():
            hits += [(lane, case, rank, card, score) for rank, (card, score) in enumerate(ranking, start=1)]
        where = question.where or {}
        lines.append(
            (
                case,
                str(answer.outcome),
                round(answer.ms, 3),
                eligible.cards(where),
                answer.extended,
                answer.detail,
                canonical(where),
                {lane: round(ms, 3) for lane, ms in {**answer.lane_ms, **exact_ms[place]}.items()},
            )
        )
    return Run(
        method.name,
        pd.DataFrame(hits, columns=list(HIT_COLUMNS)),
        pd.DataFrame(lines, columns=list(ANSWER_COLUMNS)),
        mode,
    )


def _above(answer: Ranked, method: Retriever, suite: Suite) -> Ranked:
    """The answer without the cards whose cosine is below `min_similarity`, or that the cosine lane did not bring."""
    least = suite.retrieval.min_similarity
    if least is None or not answer.outcome.measured:
        return answer
    lane = next((name for name in ("dense", "exact") if name in answer.lanes), method.name)
    near = {card for card, cosine in answer.lanes[lane] if cosine >= least}
    kept = [(card, points) for card, points in answer.lanes[method.name] if card in near]
    outcome = Outcome.ANSWERED if kept else Outcome.EMPTY
    return dataclasses.replace(answer, outcome=outcome, lanes={**answer.lanes, method.name: kept})


def _checked(answer: Ranked, method: Retriever, eligible: int, cards: set[str], suite: Suite) -> Ranked:
    """The answer, or the outcome that says why it is none; a failed answer keeps no hit."""
    hits = answer.lanes.get(method.name, ())
    outcome, detail = answer.outcome, answer.detail
    least = min(suite.cuts[-1], eligible)
    if outcome.measured:
        if answer.ms > suite.retrieval.timeout_s * 1000:
            outcome, detail = Outcome.TIMEOUT, f"{answer.ms / 1000:.1f} s; {suite.retrieval.timeout_s:g} s are allowed"
        elif broken := fault(hits, dict.fromkeys(cards)):
            outcome, detail = Outcome.MALFORMED, broken
        elif len(hits) < least and not method.short_list_is_legal:
            outcome, detail = Outcome.MALFORMED, f"{len(hits)} cards where {least} are eligible"
        else:
            outcome = Outcome.ANSWERED if hits else Outcome.EMPTY
    return dataclasses.replace(answer, outcome=outcome, lanes=answer.lanes if outcome.measured else {}, detail=detail)


def _references(
    method: Retriever, index: Index, suite: Suite, questions: Sequence[Question], answers: Sequence[Ranked]
) -> tuple[list[dict[str, Hits]], list[dict[str, float]]]:
    """For each question, the exact lane beside each approximate one, and the method's ranking had it used them."""
    lanes = method.lanes or (method.name,)
    exact = {lane: RETRIEVERS[lane].reference for lane in lanes if RETRIEVERS[lane].reference}
    if not exact:
        return [{} for _ in questions], [{} for _ in questions]
    searched = {
        reference: RETRIEVERS[reference].connect(index, suite)(questions, suite.cuts[-1]) for reference in exact.values()
    }
    found: list[dict[str, Hits]] = []
    for place, answer in enumerate(answers):
        own: Mapping[str, Any] = answer.lanes
        replaced = {ref: list(searched[ref][place].lanes.get(ref, ())) for ref in exact.values()}
        if not answer.outcome.measured:
            found.append({})
            continue
        lists = [replaced[exact[lane]] if lane in exact else list(own[lane]) for lane in lanes]
        reference = method.fuse(lists, suite) if method.fuse else lists[0]
        least = suite.retrieval.min_similarity
        if least is not None:
            near = {card for card, cosine in replaced["exact"] if cosine >= least}
            reference = [(card, points) for card, points in reference if card in near]
        found.append({**replaced, REFERENCE: reference})
    return found, [{ref: searched[ref][place].ms for ref in exact.values()} for place in range(len(answers))]
