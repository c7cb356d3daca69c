"""The gold's labels are not what the filter asks for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import ACCESS, FILTER, Laboratory
from kbgate.tasks.domain import Card, Predicate
from kbgate.tasks.predicates import DATES, parts_of, store_fields
from kbgate.tasks.tables import Value

LIFTED = frozenset({FILTER, ACCESS})


@cause("label", after="validity", changed=("card",))
def label(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """A label of the card was changed, and a filter or an access rule hides it now."""
    if not missing.stood or missing.gold not in lab.cards or not lab.hides(missing.case, missing.gold) & LIFTED:
        return None
    case, card, old = lab.cases[missing.case], lab.cards[missing.gold], lab.as_it_was(missing.gold)
    asked = sorted({name for predicate in (case.filter, case.entitled) for name in fields_of(predicate)})
    now = store_fields(card, lab.suite.kb.filterable)
    if old is None:
        labels = ", ".join(f"{name} is {_shown(card, now, name)}" for name in asked)
        back = lab.brings_back(missing.case, missing.gold, lift=LIFTED)
        rank = lab.ask(missing.case, lift=LIFTED).rank(missing.gold)
        how = "with the filter lifted"
    else:
        then = store_fields(old, lab.suite.kb.filterable)
        turned = [name for name in asked if now.get(name) != then.get(name)]
        if not turned:
            return None
        labels = ", ".join(f"{name} was {_shown(old, then, name)} and is {_shown(card, now, name)}" for name in turned)
        change = lab.replaced(labelled_as(old, card))
        back, rank = lab.brings_back(missing.case, missing.gold, change), lab.ask(missing.case, change).rank(missing.gold)
        how = "labelled as before"
    sentence = f"'{missing.gold}' is hidden by its labels ({labels}); {how} it stands at {rank or 'no rank'}"
    return Confirmed(sentence, (missing.gold,), back)


def _shown(card: Card, stored: Mapping[str, Value], name: str) -> str:
    """A label as it is written in the card's file."""
    return repr(getattr(card, name) or None if name in DATES else stored.get(name))


def labelled_as(old: Card, card: Card) -> Card:
    """A card with all that filters look at as another one has it."""
    return dataclasses.replace(
        card,
        language=old.language,
        tier=old.tier,
        domain=old.domain,
        topics=old.topics,
        valid_from=old.valid_from,
        valid_until=old.valid_until,
        metadata=old.metadata,
    )


def fields_of(predicate: Predicate | None) -> Iterator[str]:
    """The fields a predicate looks at."""
    if not predicate:
        return
    joined, parts = parts_of(predicate)
    if not joined:
        yield from predicate
    for part in parts:
        yield from fields_of(part)
