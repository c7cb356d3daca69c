"""Faults of the questions: what the application sends along with them."""

from __future__ import annotations

import dataclasses
from random import Random

from kbgate.tasks.studies.faults import BAD_INPUT, Copy, Spoiled, fault


@fault("filter wrong", causes=("filter", BAD_INPUT))
def filter_wrong(copy: Copy, draw: Random) -> Spoiled | None:
    """A question is asked with a filter that its answer does not satisfy, or that no card does."""
    asked = [case for case in copy.cases if case.kind != "no_match"]
    if not asked:
        return None
    case = draw.choice(asked)
    domains = sorted(
        {card.domain for card in copy.cards} - {card.domain for card in copy.cards if card.id in case.grades} - {""}
    )
    wrong = {"domain": draw.choice(domains)} if domains and draw.random() < 0.5 else {"language": "xx"}
    copy.edit_case(case, dataclasses.replace(case, filter=wrong))
    return Spoiled(case.id, (case.id,))
