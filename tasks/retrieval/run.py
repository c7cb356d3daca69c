"""Every case asked once: questions made from cases, answers checked, rankings kept as one run."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence

from kbgate.tasks.domain import Cases, Index, Mode, Outcome, Question, Ranked
from kbgate.tasks.errors import Unmeasured
from kbgate.tasks.predicates import both, in_store_values, valid_at
from kbgate.tasks.records import canonical
from kbgate.tasks.results import Answer, Run
from kbgate.tasks.retrieval import RETRIEVERS, Retriever, ScoreKind, lanes_of, run_of
from kbgate.tasks.retrieval.blocks import search_in_blocks
from kbgate.tasks.retrieval.eligible import eligible_of
from kbgate.tasks.retrieval.lanes import fault, joined
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import NOTHING, REFERENCE, Hits, Vectors

_MS_DIGITS = 3


def questions_of(cases: Cases, vectors: Vectors, as_of: dt.datetime) -> list[Question]:
    """One question per case: validity at `as_of`, `filter` and `entitled` joined into one predicate for the store."""
    questions = []
    for case, vector in zip(cases.values(), vectors, strict=True):
        extra = [in_store_values(written) for written in (case.filter, case.entitled) if written is not None]
        questions.append(Question(case.query, case.language, both(valid_at(as_of), *extra), vector))
    return questions


def retrieve(suite: Suite, index: Index, cases: Cases, vectors: Vectors, as_of: dt.datetime, mode: Mode) -> Run:
    """Ask every case with the suite's method; `vectors`: one per case, in their order."""
    method = RETRIEVERS[suite.retrieval.method]
    questions = questions_of(cases, vectors, as_of)
    given = method.connect(index, suite)(questions, suite.cuts[-1])
    searched = {
        reference: RETRIEVERS[reference].connect(index, suite)(questions, suite.cuts[-1])
        for reference in dict.fromkeys(lane.reference for lane in lanes_of(method.name) if lane.reference)
    }
    return _run(suite, index, cases, questions, given, searched, mode)


def ranks_exactly(method: str) -> bool:
    """Whether what a method does can be worked out from vectors and words alone, without asking the method itself."""
    part, lanes = RETRIEVERS[method], lanes_of(method)
    return all(lane.scores in (ScoreKind.COSINE, ScoreKind.BM25) for lane in lanes) and (
        not part.lanes or part.fuse is not None
    )


def rank_exactly(suite: Suite, index: Index, cases: Cases, vectors: Vectors, as_of: dt.datetime) -> Run:
    """Every case as the suite's method would rank it with exact search: all questions against all rows, in blocks.

    `index` stands in memory. Only for a method of which `ranks_exactly` holds.
    """
    method, k = RETRIEVERS[suite.retrieval.method], suite.cuts[-1]
    questions, searched, lanes = questions_of(cases, vectors, as_of), {}, []
    for lane in lanes_of(method.name):
        cosine = lane.scores == ScoreKind.COSINE
        search = search_in_blocks(lane.name, index, suite) if cosine else lane.connect(index, suite)
        lanes.append(search(questions, k))
        if lane.reference:
            searched[lane.reference] = [_renamed(answer, lane.name, lane.reference) for answer in lanes[-1]]
    given = lanes[0]
    if method.lanes:
        given = [joined(method, answers, suite) for answers in zip(*lanes, strict=True)]
    return _run(suite, index, cases, questions, given, searched, Mode.FULL)


def _renamed(answer: Ranked, lane: str, reference: str) -> Ranked:
    """What a lane found exactly, as its reference's answer."""
    return dataclasses.replace(answer, lanes={reference: answer.lanes.get(lane, NOTHING)})


def _run(
    suite: Suite,
    index: Index,
    cases: Cases,
    questions: Sequence[Question],
    given: Sequence[Ranked],
    searched: Mapping[str, Sequence[Ranked]],
    mode: Mode,
) -> Run:
    """The answers held against what an answer has to be, and kept; `searched`: what the exact lanes found, by lane."""
    method = RETRIEVERS[suite.retrieval.method]
    if len(given) != len(questions):
        raise Unmeasured(f"{method.name} answered {len(given)} of {len(questions)} questions")
    eligible, cards = eligible_of(index.rows), frozenset(card for of_row in index.rows.cards for card in of_row)
    asked = [
        _above(_checked(answer, method, eligible.cards(question.where), cards, suite), method, suite)
        for answer, question in zip(given, questions, strict=True)
    ]
    exact = _references(method, suite, asked, searched)
    lanes: dict[str, dict[str, Hits]] = {}
    answers = {}
    for case, question, answer, reference in zip(cases, questions, asked, exact, strict=True):
        for lane, hits in {**answer.lanes, **reference.lanes}.items():
            lanes.setdefault(lane, {})[case] = hits
        answers[case] = Answer(
            outcome=answer.outcome,
            ms=round(answer.ms, _MS_DIGITS),
            eligible=eligible.cards(question.where),
            extended=answer.extended,
            detail=answer.detail,
            predicate=canonical(question.where),
            lane_ms={lane: round(ms, _MS_DIGITS) for lane, ms in {**answer.lane_ms, **reference.lane_ms}.items()},
        )
    return run_of(method.name, answers, lanes, mode)


def _above(answer: Ranked, method: Retriever, suite: Suite) -> Ranked:
    """The answer without the cards whose cosine is below `min_similarity`, or that the cosine lane did not bring."""
    least = suite.retrieval.min_similarity
    if least is None or not answer.outcome.measured:
        return answer
    near = answer.lanes[_cosine_lane(method)].at_least(least)
    kept = answer.lanes[method.name].only(near)
    outcome = Outcome.ANSWERED if len(kept) else Outcome.EMPTY
    return dataclasses.replace(answer, outcome=outcome, lanes={**answer.lanes, method.name: kept})


def _cosine_lane(method: Retriever) -> str:
    """The lane whose cosines `min_similarity` is held against; the settings refuse one where there is none."""
    return next((lane.name for lane in lanes_of(method.name) if lane.scores == ScoreKind.COSINE), method.name)


def _checked(answer: Ranked, method: Retriever, eligible: int, cards: frozenset[str], suite: Suite) -> Ranked:
    """The answer, or the outcome that says why it is none; a failed answer keeps no hit."""
    hits = answer.lanes.get(method.name, NOTHING)
    outcome, detail = answer.outcome, answer.detail
    least = min(suite.cuts[-1], eligible)
    if outcome.measured:
        if answer.ms > suite.retrieval.timeout_s * 1000:
            outcome, detail = Outcome.TIMEOUT, f"{answer.ms / 1000:.1f} s; {suite.retrieval.timeout_s:g} s are allowed"
        elif broken := fault(hits, cards):
            outcome, detail = Outcome.MALFORMED, broken
        elif len(hits) < least and not method.short_list_is_legal:
            outcome, detail = Outcome.MALFORMED, f"{len(hits)} cards where {least} are eligible"
        else:
            outcome = Outcome.ANSWERED if len(hits) else Outcome.EMPTY
    return dataclasses.replace(answer, outcome=outcome, lanes=answer.lanes if outcome.measured else {}, detail=detail)


def _references(
    method: Retriever, suite: Suite, answers: Sequence[Ranked], searched: Mapping[str, Sequence[Ranked]]
) -> list[Ranked]:
    """For each question, the exact lane beside each approximate one, and the method's ranking had it used them."""
    exact = {lane.name: lane.reference for lane in lanes_of(method.name) if lane.reference}
    if not exact:
        return [Ranked(Outcome.EMPTY) for _ in answers]
    references = []
    for place, answer in enumerate(answers):
        of_question = {reference: searched[reference][place] for reference in exact.values()}
        lane_ms = {reference: of_lane.ms for reference, of_lane in of_question.items()}
        lanes = _replaced(method, suite, answer, exact, of_question) if answer.outcome.measured else {}
        references.append(Ranked(Outcome.ANSWERED, lanes, lane_ms=lane_ms))
    return references


def _replaced(
    method: Retriever, suite: Suite, answer: Ranked, exact: Mapping[str, str], of_question: Mapping[str, Ranked]
) -> dict[str, Hits]:
    """The exact lanes of one question, and what the method would have ranked with them in place of its own."""
    hits = {reference: of_lane.lanes.get(reference, NOTHING) for reference, of_lane in of_question.items()}
    lists = [hits[exact[name]] if name in exact else answer.lanes[name] for name in method.lanes or (method.name,)]
    ranking = method.fuse(lists, suite) if method.fuse else lists[0]
    least = suite.retrieval.min_similarity
    if least is not None:
        lane = _cosine_lane(method)
        ranking = ranking.only((hits[exact[lane]] if lane in exact else answer.lanes[lane]).at_least(least))
    return {**hits, REFERENCE: ranking}
