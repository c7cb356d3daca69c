"""The approximate index does not find what is there."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory


@cause("lost_by_index", order=140, lost_by_index=True)
def lost_by_index(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The approximate index loses the card: exact search over the same vectors finds it."""
    rank = lab.ask(missing.case).rank(missing.gold)
    lost = missing.now is None or missing.now > lab.suite.top_k
    if rank is None or rank > lab.suite.top_k or not lost:
        return None
    turned = [f"{n} was {then!r} and is {now!r}" for n, (then, now) in lab.turned.items() if n.startswith("index.")]
    told = f" ({', '.join(turned)})" if turned else ""
    return Confirmed(
        f"exact search over the same vectors finds '{missing.gold}' at {rank}, the index at {missing.now or 'no rank'}{told}",
        tuple(name for name in lab.turned if name.startswith("index.")),
    )
