"""How a case is worded when it is accepted, so that it can be asked again when its file says something else."""

from __future__ import annotations

from kbgate.tasks.domain import Case, Predicate
from kbgate.tasks.records import as_json
from kbgate.tasks.schema import Asked, Span, Written


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


def _plain(predicate: Predicate | None) -> Written | None:
    return None if predicate is None else {name: as_json(value) for name, value in predicate.items()}
