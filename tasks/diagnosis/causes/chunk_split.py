"""What answers the question is cut in two."""

from __future__ import annotations

import dataclasses

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.diagnosis.variants import AS_IS, Change


@cause("chunk_split", after="text_lost", changed=("card", "chunking"))
def chunk_split(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card, or the span that answers, is split over chunks; unsplit it would rank."""
    if missing.gold not in lab.cards:
        return None
    return _cut_otherwise(missing, lab) or _span_cut(missing, lab) or _card_split(missing, lab)


def whole(missing: Missing, lab: Laboratory) -> Change:
    """The gold as one chunk; as it is where it is gone."""
    if missing.gold not in lab.cards:
        return AS_IS
    return lab.replaced(lab.cards[missing.gold], whole=True)


def _cut_otherwise(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """All cards are cut by other settings than the baseline's."""
    turned = {name: values for name, values in lab.changed_settings.items() if name.startswith("chunking.")}
    before = lab.under_the_baselines("chunking") if turned else None
    if before is None or not before.brings_back(missing.case, missing.gold):
        return None
    settings = ", ".join(f"{name} was {then!r} and is {now!r}" for name, (then, now) in turned.items())
    rank = before.ask(missing.case).rank(missing.gold)
    return Confirmed(f"{settings}; cut as before, '{missing.gold}' stands at {rank}", (missing.gold,))


def _span_cut(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The labelled evidence stands in no chunk."""
    span = _cut_span(missing, lab)
    if not span:
        return None
    change = lab.added(dataclasses.replace(lab.cards[missing.gold], text=span, title="", description=""), whole=True)
    if not lab.brings_back(missing.case, missing.gold, change):
        return None
    rank = lab.ask(missing.case, change).rank(missing.gold)
    return Confirmed(
        f"the span that answers is cut by a chunk's border; unsplit, '{missing.gold}' stands at {rank}", (missing.gold,)
    )


def _card_split(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card is in more pieces than it was."""
    old = lab.as_it_was(missing.gold)
    chunks = lab.chunk_count(missing.gold)
    before = len(lab.pieces([old]).rows) if old else 0
    change = whole(missing, lab)
    if chunks < 2 or (missing.stood and before >= chunks) or not lab.brings_back(missing.case, missing.gold, change):
        return None
    rank = lab.ask(missing.case, change).rank(missing.gold)
    return Confirmed(f"'{missing.gold}' is split into {chunks} chunks; as one it stands at {rank}", (missing.gold,))


def _cut_span(missing: Missing, lab: Laboratory) -> str:
    """The labelled evidence in the gold that no single chunk holds; "" where there is none."""
    text, chunks = lab.cards[missing.gold].text, lab.texts_of(missing.gold)
    for evidence in lab.cases[missing.case].evidence:
        if evidence.card == missing.gold:
            span = evidence.text or text[evidence.start or 0 : evidence.end]
            if span in text and not any(span in chunk for chunk in chunks):
                return span
    return ""
