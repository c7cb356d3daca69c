"""The columns of the tables that stages hand each other.

Many rows travel as a pandas DataFrame with the columns written here. Absent text is "", an absent object is None; ids are
text and compare as they are.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

CARD_COLUMNS = (
    "id", "title", "text", "language", "concept", "description", "tier", "domain", "topics", "valid_from",
    "valid_until", "updated_at", "source_url", "metadata", "hash", "file", "line",
)  # fmt: skip
"""One row per card. topics: list of text; valid_from, valid_until: datetime.date or None; metadata: dict;
hash: 16 hex digits of all that a reader of the card could see; file, line: where it was read."""

CASE_COLUMNS = (
    "id", "query", "kind", "language", "groups", "grades", "filter", "entitled", "canary", "cluster", "split",
    "numeric", "attack", "topic", "intent", "evidence", "right_filter", "hash", "file", "line",
)  # fmt: skip
"""One row per case. groups: tuple of tuples of card ids (AND between groups, OR inside one); grades: {card id: relevance
>= 1}; filter, entitled: a predicate or None; evidence: tuple of {card, text | start, end}; hash: 16 hex digits of what
makes two runs of the case comparable."""

CHUNK_COLUMNS = ("id", "card", "start", "end", "text")
"""One row per chunk. id: `<card>::<nn>`; start, end: its span of the card's text, end exclusive; text: what is embedded."""

ROW_COLUMNS = ("id", "text", "language", "fields")
"""One row per row of the index: a distinct (embedded text, filterable fields). fields: dict as the store holds it."""

MEMBER_COLUMNS = ("row", "chunk", "card")
"""Which chunks and cards a row of the index stands for."""

HIT_COLUMNS = ("lane", "case", "rank", "card", "score")
"""One row per (lane, case, card), rank from 1. The lane that bears the method's name is the ranking that is judged."""

REFERENCE = "reference"
"""The lane that holds what the method would have ranked with exact search in place of its approximate index."""

ANSWER_COLUMNS = ("case", "outcome", "ms", "eligible", "extended", "detail", "predicate", "lane_ms")
"""One row per case asked. ms: milliseconds of the search alone; eligible: cards it could have returned; extended: whether
a lane had to be asked for more than `candidates` chunks; detail: what went wrong, or ""."""

SCORE_COLUMNS = ("lane", "case", "metric", "value")
"""One row per (lane, case, figure such as `ndcg@10`), six decimals. Undefined figures have no row."""


PLACEMENT_COLUMNS = (
    "case", "hash", "cluster", "canary", "tier_gold", "outcome", "groups", "grades", "ranks",
    "domains", "tiers", "top", "kth",
)  # fmt: skip
"""One row per case asked: where its gold stands. domains, tiers: those of its gold cards; groups, grades: the gold its
asker may see; ranks: {gold card: rank or None}, to depth `candidates`; top: the first top_k card
ids; kth: {lane: score at top_k or at its end}; tier_gold: whether any gold is a curated synthesis."""

FIGURE_COLUMNS = (
    "lane", "slice", "metric", "baseline", "current", "delta", "low", "high", "p", "visible", "n", "clusters", "wins", "ties",
    "losses", "since_anchor", "since_previous",
)  # fmt: skip
"""One row per figure: slice is "" for all cases or such as "language=es-419"; baseline, current: means over the same n
cases where there is a baseline, over all asked ones where there is none; NaN: not measured. wins: cases that got
better; NaN where cases were not compared one by one. low, high: 95 % interval of the delta, of current without a baseline;
p: one-sided, of a fall no larger than the tolerance; visible: the smallest fall so many clusters would have shown;
since_anchor: delta to the last anchored baseline; since_previous: to the mean of the previous run of the same cases."""

CHANGE_COLUMNS = ("case", "change", "query", "kind", "language", "edited", "canary", "tier_gold", "then", "now")
"""One row per case whose passing changed, or that is new and fails. change: newly_failing, slipped, newly_passing,
unbaselined_failing or access_widened; then, now: {gold card: rank or None}, then is {} for a new case."""


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A table's rows as plain dicts, in order."""
    records: Any = table.to_dict("records")
    return list(records)
