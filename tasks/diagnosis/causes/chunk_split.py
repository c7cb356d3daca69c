"""What answers the question is cut in two."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.diagnosis.variants import AS_IS, Change


@cause("chunk_split", order=80, changed=("card", "chunking"))
def chunk_split(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card, or the span that answers, is split over chunks; unsplit it would rank."""
    if missing.gold not in lab.cards:
        return None
    if any(name.startswith("chunking.") for name in lab.turned):
        before = lab.under_the_baselines("chunking")
        if before is not None and before.brings_back(missing.case, missing.gold):
            told = ", ".join(
                f"{n} was {then!r} and is {now!r}" for n, (then, now) in lab.turned.items() if n.startswith("chunking.")
            )
            rank = before.ask(missing.case).rank(missing.gold)
            return Confirmed(f"{told}; cut as before, '{missing.gold}' stands at {rank}", (missing.gold,))
    card = lab.cards[missing.gold]
    span = _cut_span(missing, lab)
    if span:
        change = lab.added({**card, "text": span, "title": "", "description": ""}, whole=True)
        if lab.brings_back(missing.case, missing.gold, change):
            rank = lab.ask(missing.case, change).rank(missing.gold)
            return Confirmed(
                f"the span that answers is cut by a chunk's border; unsplit, '{missing.gold}' stands at {rank}", (missing.gold,)
            )
    old = lab.as_it_was(missing.gold)
    chunks = int((lab.material.members["card"] == missing.gold).sum())
    change = whole(missing, lab)
    were = len(lab.pieces([old]).rows) if old else 0
    if chunks < 2 or (missing.stood and were >= chunks) or not lab.brings_back(missing.case, missing.gold, change):
        return None
    rank = lab.ask(missing.case, change).rank(missing.gold)
    return Confirmed(f"'{missing.gold}' is split into {chunks} chunks; as one it stands at {rank}", (missing.gold,))


def whole(missing: Missing, lab: Laboratory) -> Change:
    """The gold as one chunk; as it is where it is gone."""
    if missing.gold not in lab.cards:
        return AS_IS
    return lab.replaced(lab.cards[missing.gold], whole=True)


def _cut_span(missing: Missing, lab: Laboratory) -> str:
    """The labelled evidence in the gold that no single chunk holds; "" where there is none."""
    text, rows = lab.cards[missing.gold]["text"], lab.material.members
    own = set(rows.loc[rows["card"] == missing.gold, "row"])
    chunks = lab.material.rows.loc[lab.material.rows["id"].isin(own), "text"].tolist()
    for evidence in lab.cases[missing.case]["evidence"]:
        if evidence["card"] == missing.gold:
            span = evidence.get("text") or text[evidence.get("start") or 0 : evidence.get("end")]
            if span in text and not any(span in chunk for chunk in chunks):
                return str(span)
    return ""
