"""The gold's letters are broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory

_TEXTS = ("title", "description", "text")


@cause("mojibake", order=40, changed=("card",))
def mojibake(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The card's text was decoded with the wrong character set."""
    if missing.gold not in lab.cards or not is_broken(lab.cards[missing.gold]):
        return None
    old = lab.as_it_was(missing.gold)
    if missing.stood and old is not None and is_broken(old):
        return None
    card = lab.cards[missing.gold]
    mended = _mended(card)
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


def is_broken(card: Mapping[str, Any]) -> bool:
    """Whether a card's texts were decoded with the wrong character set."""
    return any(text != card[name] for name, text in _mended(card).items())


def _mended(card: Mapping[str, Any]) -> dict[str, str]:
    import ftfy

    return {name: ftfy.fix_encoding(card[name]) for name in _TEXTS}
