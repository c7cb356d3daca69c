"""What is asked for stands beyond what the model reads of the question."""

from __future__ import annotations

from kbgate.tasks.diagnosis.causes import Confirmed, Missing, cause
from kbgate.tasks.diagnosis.laboratory import Laboratory
from kbgate.tasks.diagnosis.truncation import cut_off


@cause("question_limit", after="input_limit", changed=("case", "embedding"))
def question_limit(missing: Missing, lab: Laboratory) -> Confirmed | None:
    """The model cuts off the end of the question."""
    query = lab.cases[missing.case].query
    limit, (unread,) = cut_off(lab.material.model, lab.suite.embedding.query_prefix, [query])
    if not unread:
        return None
    rank = lab.ask_instead(missing.case, unread).rank(missing.gold)
    if rank is None or rank > lab.suite.top_k:
        return None
    return Confirmed(
        f"the model reads {limit} tokens of the question and drops its last {len(unread)} characters; asked by these alone, "
        f"'{missing.gold}' stands at {rank}",
    )
