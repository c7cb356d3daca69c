"""The whole story of one case: what it asks, what it finds, and why each gold it misses is missing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kbgate.tasks.diagnosis.causes import Missing
from kbgate.tasks.diagnosis.diagnosis import explain
from kbgate.tasks.diagnosis.laboratory import ACCESS, Laboratory
from kbgate.tasks.domain import Case, Cases, Inputs, Material
from kbgate.tasks.findings import Finding
from kbgate.tasks.gate.policy import policy_fingerprint
from kbgate.tasks.identity import identity_of, run_folder
from kbgate.tasks.index.fingerprint import golden_fingerprint
from kbgate.tasks.predicates import valid_cards
from kbgate.tasks.runs.history import read_history
from kbgate.tasks.tables import Vectors

_WIDTH = 100


@dataclass(frozen=True, slots=True)
class TopCard:
    """A card in the top k."""

    rank: int
    card: str
    title: str
    marks: tuple[str, ...]
    """What is to be known of it: "gold", "new", "changed"."""


@dataclass(frozen=True, slots=True)
class Above:
    """A card that is new or changed and stands above a gold that is missed."""

    card: str
    title: str
    since: str
    """"new" or "changed"."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A gold that is missing, and why."""

    finding: Finding
    title: str
    above: tuple[Above, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """One case, as it stands."""

    case: str
    query: str
    about: str
    """Kind, language and whether it is a canary."""
    ranks_from: str
    """Where the ranks are from, as half a sentence."""
    top_k: int
    top: tuple[TopCard, ...]
    golds: tuple[str | Lost, ...]
    """What became of each group of gold: a sentence, or a gold that is missing."""


def explain_case(
    inputs: Inputs, material: Material, cases: Cases, vectors: Vectors, as_of: dt.datetime, home: Path
) -> Explanation:
    """One case in full; `cases`, `vectors`: that case alone."""
    lab = Laboratory(inputs, material, cases, vectors, as_of, home)
    (case,) = cases.values()
    examined = _examined(inputs, material, as_of, home, case.id)
    about = [case.kind, case.language, *(["canary"] if case.canary else [])]
    by_search = {card: rank for rank, card in enumerate(lab.ask(case.id).hits.ids, start=1)}
    ranks = by_search if examined is None else examined
    return Explanation(
        case=case.id,
        query=case.query,
        about=", ".join(part for part in about if part),
        ranks_from="by exact search: no run examined this index" if examined is None else "those of the last run",
        top_k=inputs.suite.top_k,
        top=tuple(_top(lab, case, ranks)),
        golds=tuple(_golds(lab, case, ranks)),
    )


def _top(lab: Laboratory, case: Case, ranks: Mapping[str, int]) -> Iterator[TopCard]:
    gold = {card for group in case.groups for card in group}
    for card, rank in sorted(ranks.items(), key=lambda item: (item[1], item[0])):
        if rank <= lab.suite.top_k:
            marks = (*(["gold"] if card in gold else []), *([_since(lab, card)] if card in lab.newcomers else []))
            yield TopCard(rank, card, _short(lab.cards[card].title), marks)


def _golds(lab: Laboratory, case: Case, ranks: Mapping[str, int]) -> Iterator[str | Lost]:
    """What became of each group of gold."""
    row, k = lab.inputs.baseline.cases.get(case.id) if lab.inputs.baseline else None, lab.suite.top_k
    then = row.gold_ranks if row else {}
    if not case.groups:
        yield "no gold: nothing should be found for it"
    for gone in lab.inputs.vanished:
        if gone.case == case.id and gone.excerpt:
            yield _lost(lab, Missing(case.id, gone.card, then.get(gone.card), ranks.get(gone.card), True, gone.excerpt))
    for group in case.groups:
        hidden = {card for card in group if card in lab.cards and ACCESS in lab.hides(case.id, card)}
        in_reach = sorted(card for card in group if ranks.get(card, k + 1) <= k)
        if len(hidden) == len(group):
            yield f"hidden: {', '.join(sorted(hidden))}: its asker may not see it, and must not"
        elif in_reach:
            yield f"found: {', '.join(in_reach)}" + (" (one of several suffices)" if len(group) > 1 else "")
        else:
            stood = sorted(card for card in group if (then.get(card) or k + 1) <= k)
            for card in stood or sorted(set(group) - hidden):
                yield _lost(lab, Missing(case.id, card, then.get(card), ranks.get(card), card in stood))


def _lost(lab: Laboratory, missing: Missing) -> Lost:
    finding = explain(missing, lab)
    above = tuple(Above(card, _short(title), _since(lab, card)) for card, title in finding.above)
    gold = lab.cards.get(finding.gold)
    return Lost(finding, _short(gold.title) if gold else "not in the knowledge base", above)


def _since(lab: Laboratory, card: str) -> str:
    """How a card that is new or changed differs from the baseline."""
    return "new" if lab.is_new(card) else "changed"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


def _examined(inputs: Inputs, material: Material, as_of: dt.datetime, home: Path, case: str) -> dict[str, int] | None:
    """Ranks by card, of the last run that asked this case of this index, in this way, of cards
    that were valid then as now; None where there is none.
    """
    import pyarrow.parquet as pq

    golden, policy = golden_fingerprint(inputs.golden.cases), policy_fingerprint(inputs.suite)
    valid = valid_cards(inputs.kb.cards, as_of)
    for line in reversed(read_history(home, identity_of(inputs.suite).keys)):
        path = run_folder(home, inputs.suite, line.run) / "run.parquet"
        same = (line.fingerprints.index, line.fingerprints.golden, line.fingerprints.policy)
        alike = line.valid_at is not None and valid_cards(inputs.kb.cards, line.valid_at) == valid
        if alike and same == (material.fingerprint, golden, policy) and path.exists():
            table = pq.read_table(path, columns=["card", "rank"], filters=[("case", "==", case)])
            ranks = zip(table.column("card").to_pylist(), table.column("rank").to_pylist(), strict=True)
            by_card = {str(card): int(rank) for card, rank in ranks if rank is not None}
            if by_card:
                return by_card
    return None
