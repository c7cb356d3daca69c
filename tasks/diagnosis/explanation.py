"""The whole story of one case: what it asks, what it finds, and why each gold it misses is missing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from kbgate.tasks.diagnosis.causes import Missing
from kbgate.tasks.diagnosis.diagnosis import explain
from kbgate.tasks.diagnosis.laboratory import ACCESS, Laboratory
from kbgate.tasks.domain import Inputs, Material
from kbgate.tasks.findings import Finding
from kbgate.tasks.index.fingerprint import golden_fingerprint, policy_fingerprint
from kbgate.tasks.index.vectors import Vectors
from kbgate.tasks.runs.history import read_history

_WIDTH = 100


def explain_case(
    inputs: Inputs, material: Material, cases: pd.DataFrame, vectors: Vectors, day: dt.date, home: Path
) -> Iterator[str]:
    """One case as a person reads it, a line at a time; `cases`, `vectors`: that case alone."""
    lab = Laboratory(inputs, material, cases, vectors, day, home)
    ((name, case),) = lab.cases.items()
    examined = _examined(inputs, material, day, home, name)
    yield f"{name}: {case['query']}"
    about = [case["kind"], case["language"], *(["canary"] if case["canary"] else [])]
    yield f"  {', '.join(part for part in about if part)}; " + (
        "ranks are those of the last run" if examined is not None else "ranks are by exact search: no run examined this index"
    )
    ranking = lab.ask(name)
    ranks = examined if examined is not None else {card: ranking.rank(card) for card, _ in ranking.hits}
    yield f"top {inputs.suite.top_k}:"
    gold = {card for group in case["groups"] for card in group}
    for card, rank in sorted(ranks.items(), key=lambda item: (item[1] or 0, item[0])):
        if rank is not None and rank <= inputs.suite.top_k:
            marks = [word for word, there in (("gold", card in gold), (_came(lab, card), True)) if there and word]
            yield f"  {rank:>3} {card}{' (' + ', '.join(marks) + ')' if marks else ''}: {_short(lab.cards[card]['title'])}"
    row = inputs.baseline.cases.get(name) if inputs.baseline else None
    then = row["gold_ranks"] if row else {}
    if not gold:
        yield "no gold: nothing should be found for it"
    for lost in inputs.vanished:
        if lost.case == name and lost.excerpt:
            gone = Missing(name, lost.card, then.get(lost.card), ranks.get(lost.card), True, lost.excerpt)
            yield from _told(explain(gone, lab), lab)
    for group in case["groups"]:
        hidden = [card for card in group if card in lab.cards and ACCESS in lab.hides(name, card)]
        if len(hidden) == len(group):
            yield f"hidden: {', '.join(sorted(hidden))}: its asker may not see it, and must not"
            continue
        found = [card for card in group if (ranks.get(card) or inputs.suite.top_k + 1) <= inputs.suite.top_k]
        if found:
            yield f"found: {', '.join(sorted(found))}" + (" (one of several suffices)" if len(group) > 1 else "")
            continue
        stood = [card for card in sorted(group) if (then.get(card) or inputs.suite.top_k + 1) <= inputs.suite.top_k]
        for card in stood or sorted(set(group) - set(hidden)):
            yield from _told(explain(Missing(name, card, then.get(card), ranks.get(card), card in stood), lab), lab)


def _told(finding: Finding, lab: Laboratory) -> Iterator[str]:
    title = lab.cards[finding.gold]["title"] if finding.gold in lab.cards else "not in the knowledge base"
    yield f"missing: {finding.gold}: {_short(title)}"
    proof = "proven" if finding.proven else "not proven"
    yield f"  {finding.cause}{'' if finding.cause == 'unknown' else f' ({proof})'}: {finding.sentence}"
    for name, value in finding.evidence.items():
        yield f"  {name:<28} {'not found' if value is None else f'{value:g}'}"
    for card, title in finding.above:
        yield f"  above it, {_came(lab, card)}: {card}: {_short(title)}"


def _came(lab: Laboratory, card: str) -> str:
    return "" if card not in lab.came else "changed" if lab.inputs.baseline and card in lab.inputs.baseline.cards else "new"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


def _examined(inputs: Inputs, material: Material, day: dt.date, home: Path, case: str) -> dict[str, Any] | None:
    """Ranks by card, of the last run that asked this case of this index, in this way, on this day; None where there is none."""
    same = {
        "index": material.fingerprint,
        "golden": golden_fingerprint(inputs.golden.cases),
        "policy": policy_fingerprint(inputs.suite),
    }
    for line in reversed(read_history(home, inputs.suite.name)):
        path = home / "runs" / inputs.suite.name / line["run"] / "run.parquet"
        alike = same.items() <= line["fingerprints"].items() and line.get("as_of") == day.isoformat()
        if alike and path.exists():
            table = pd.read_parquet(path, columns=["case", "card", "rank"], filters=[("case", "==", case)])
            own = table[table["rank"].notna()]
            if len(own):
                return {str(card): int(rank) for card, rank in zip(own["card"], own["rank"], strict=True)}
    return None
