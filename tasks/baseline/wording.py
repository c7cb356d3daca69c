"""How a case was worded when it was accepted, so that it can be asked again when its file says something else."""

from __future__ import annotations

from typing import cast

from kbgate.tasks.domain import Case, Evidence, Predicate
from kbgate.tasks.records import as_json
from kbgate.tasks.schema import Asked, BaselineCase, Span, Written


def asked_of(case: Case) -> Asked:
    """What a case asks and what must be found, as its row keeps it."""
    return Asked(
        query=case.query,
        kind=case.kind,
        language=case.language,
        groups=[list(group) for group in case.groups],
        grades=dict(case.grades),
        filter=_plain(case.filter),
        entitled=_plain(case.entitled),
        right_filter=_plain(case.right_filter),
        evidence=[Span(card=span.card, text=span.text, start=span.start, end=span.end) for span in case.evidence],
    )


def case_of(row: BaselineCase) -> Case:
    """The case of a row, to be asked again as it was asked then."""
    asked = row.asked
    return Case(
        id=row.id,
        query=asked.query,
        kind=asked.kind,
        language=asked.language,
        groups=tuple(tuple(group) for group in asked.groups),
        grades=asked.grades,
        filter=cast("Predicate | None", asked.filter),
        entitled=cast("Predicate | None", asked.entitled),
        right_filter=cast("Predicate | None", asked.right_filter),
        canary=row.canary,
        cluster=row.cluster,
        numeric=row.numeric,
        attack=row.attack,
        topic=row.topic,
        intent=row.intent,
        evidence=tuple(Evidence(span.card, span.text, span.start, span.end) for span in asked.evidence),
        hash=row.hash,
    )


def _plain(predicate: Predicate | None) -> Written | None:
    return None if predicate is None else {name: as_json(value) for name, value in predicate.items()}
