"""The approximate index does not find what is there."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory


@cause("lost_by_index", after="question_limit", lost_by_index=True)
def lost_by_index(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The approximate index loses the card: exact search over the same vectors finds it."""
    rank = lab.ask(missing.case).rank(missing.gold)
    lost = missing.now is None or missing.now > lab.suite.top_k
    if rank is None or rank > lab.suite.top_k or not lost:
        return None
    turned = {name: values for name, values in lab.changed_settings.items() if name.startswith("index.")}
    settings = ", ".join(f"{name} was {then!r} and is {now!r}" for name, (then, now) in turned.items())
    sentence = f"exact search over the same vectors finds '{missing.gold}' at {rank}, the index at {missing.now or 'no rank'}"
    return Confirmed(f"{sentence} ({settings})" if settings else sentence, tuple(turned))
