"""The gold's labels are not what the filter asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import ACCESS, FILTER, Laboratory
from kbgate.tasks.predicates import store_fields

LIFTED = frozenset({FILTER, ACCESS})
_LABELS = ("language", "tier", "domain", "topics", "valid_from", "valid_until", "metadata")


@cause("label", order=110, changed=("card",))
def label(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """A label of the card was changed, and a filter or an access rule hides it now."""
    if not missing.stood or missing.gold not in lab.cards or not lab.hides(missing.case, missing.gold) & LIFTED:
        return None
    case, card, old = lab.cases[missing.case], lab.cards[missing.gold], lab.as_it_was(missing.gold)
    asked = sorted({name for part in ("filter", "entitled") for name in fields_of(case[part])})
    now = store_fields(card, lab.suite.kb.filterable)
    if old is None:
        told = ", ".join(f"{name} is {now.get(name)!r}" for name in asked)
        back, rank = _lifted(missing, lab)
        how = "with the filter lifted"
    else:
        then = store_fields(old, lab.suite.kb.filterable)
        turned = [name for name in asked if now.get(name) != then.get(name)]
        if not turned:
            return None
        told = ", ".join(f"{name} was {then.get(name)!r} and is {now.get(name)!r}" for name in turned)
        change = lab.replaced({**card, **{name: old[name] for name in _LABELS}})
        back, rank = lab.brings_back(missing.case, missing.gold, change), lab.ask(missing.case, change).rank(missing.gold)
        how = "labelled as before"
    sentence = f"'{missing.gold}' is hidden by its labels ({told}); {how} it stands at {rank or 'no rank'}"
    return Confirmed(sentence, (missing.gold,), back)


def _lifted(missing: Missing, lab: Laboratory) -> tuple[bool, int | None]:
    rank = lab.ask(missing.case, lift=LIFTED).rank(missing.gold)
    return lab.brings_back(missing.case, missing.gold, lift=LIFTED), rank


def fields_of(predicate: Any) -> Iterator[str]:
    """The fields a predicate looks at."""
    for key, condition in (predicate or {}).items():
        if key in ("$and", "$or"):
            for part in condition:
                yield from fields_of(part)
        else:
            yield key
