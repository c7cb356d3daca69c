"""The gold's letters are broken."""

from __future__ import annotations

from tasks.studies.causes import Confirmed, Missing, cause
from tasks.studies.laboratory import Laboratory

_TEXTS = ("title", "description", "text")


@cause("mojibake", order=40, changed=("card",))
def mojibake(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card's text was decoded with the wrong character set."""
    import ftfy

    if missing.gold not in lab.cards:
        return None
    card = lab.cards[missing.gold]
    mended = {name: ftfy.fix_encoding(card[name]) for name in _TEXTS}
    if all(mended[name] == card[name] for name in _TEXTS):
        return None
    change = lab.replaced({**card, **mended})
    if not lab.brings_back(missing.case, missing.gold, change):
        return None
    broken = next(name for name in _TEXTS if mended[name] != card[name])
    place = next(at for at, (one, other) in enumerate(zip(card[broken], mended[broken], strict=False)) if one != other)
    shown = card[broken][max(place - 10, 0) : place + 10].replace("\n", " ")
    rank = lab.ask(missing.case, change).rank(missing.gold)
    return Confirmed(
        f"the {broken} of '{missing.gold}' was decoded wrongly ('{shown}'); mended, it stands at {rank}", (missing.gold,)
    )
