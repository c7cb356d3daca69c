"""Everything is embedded or ranked otherwise."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.errors import InputError

_SECTIONS = ("embedding", "retrieval")


@cause("settings", after="rejected", changed=_SECTIONS)
def settings(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The model, its prefixes or the way of ranking is not the baseline's."""
    turned = {name: values for name, values in lab.changed_settings.items() if name.split(".")[0] in _SECTIONS}
    if not turned:
        return None
    differences = ", ".join(f"{name} was {then!r} and is {now!r}" for name, (then, now) in turned.items())
    try:
        before = lab.under_the_baselines(*_SECTIONS)
    except InputError as error:
        return Confirmed(f"{differences}; not proven: {error.problems[0].sentence}", tuple(turned), proven=False)
    if before is None or not before.brings_back(missing.case, missing.gold):
        return None
    rank = before.ask(missing.case).rank(missing.gold)
    return Confirmed(f"{differences}; as it was, '{missing.gold}' stands at {rank}", tuple(turned))
