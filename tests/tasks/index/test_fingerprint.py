from __future__ import annotations

import dataclasses
import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from kbgate.tasks.domain import Card, Case, Model
from kbgate.tasks.gate.policy import policy_fingerprint
from kbgate.tasks.index.fingerprint import golden_fingerprint, index_fingerprint, kb_fingerprint
from kbgate.tasks.metrics import METRICS
from kbgate.tasks.settings import Acceptance, Allow, Embedding, Gate, IndexSettings, Retrieval, Slice, Suite
from kbgate.tasks.tables import Rows

MODEL = Model("m", "w" * 64, Path())
VERSIONS = {"chunker": 1, "analyser": 1}
ROWS = Rows(("r1",), ("t",), ("en",), ({"tier": "gold"},), (("c::00",),), (("c",),))


def suite(**settings: Any) -> Suite:
    return Suite(folder=Path(), name="x", **settings)


def test_the_index_is_known_by_what_is_searched() -> None:
    same = index_fingerprint(suite(), ROWS, MODEL, VERSIONS)
    assert same == index_fingerprint(suite(top_k=3, k_values=(3,), pass_mark=0.5), ROWS, MODEL, VERSIONS)
    others = {
        index_fingerprint(suite(), dataclasses.replace(ROWS, texts=("u",)), MODEL, VERSIONS),
        index_fingerprint(suite(), dataclasses.replace(ROWS, fields=({},)), MODEL, VERSIONS),
        index_fingerprint(suite(), dataclasses.replace(ROWS, chunks=(("c::01",),)), MODEL, VERSIONS),
        index_fingerprint(suite(), ROWS, Model("m", "v" * 64, Path()), VERSIONS),
        index_fingerprint(suite(), ROWS, None, VERSIONS),
        index_fingerprint(suite(), ROWS, MODEL, {**VERSIONS, "chunker": 2}),
        index_fingerprint(suite(index=IndexSettings(ef_search=10)), ROWS, MODEL, VERSIONS),
        index_fingerprint(suite(embedding=Embedding(query_prefix="q: ")), ROWS, MODEL, VERSIONS),
    }
    assert len({same, *others}) == 9


def test_the_policy_is_known_by_what_counts_as_red() -> None:
    same = policy_fingerprint(suite())
    assert same == policy_fingerprint(suite(as_of="today", embedding=Embedding(batch=1)))
    others = {
        policy_fingerprint(suite(gates={"contract": Gate(tolerance=0.05)})),
        policy_fingerprint(suite(floors={"contract": 0.5})),
        policy_fingerprint(suite(top_k=3)),
        policy_fingerprint(suite(pass_mark=0.5)),
        policy_fingerprint(suite(retrieval=Retrieval(method="dense"))),
        policy_fingerprint(suite(retrieval=Retrieval(candidates=50))),
    }
    assert len({same, *others}) == 7


def test_every_line_of_a_policy_is_in_its_fingerprint() -> None:
    """Each differs from the one before it in one value of one line."""
    allow = Allow(case="q1", check="canaries", reason="meant", until=dt.date(2026, 6, 1))
    part = Slice(by="language", metric="contract", tolerance=0.1)
    written: list[dict[str, Any]] = [
        {},
        {"slice": (part,)}, {"slice": (part.model_copy(update={"tolerance": 0.2}),)}, {"slice": (part, part)},
        {"allow": (allow,)}, {"allow": (allow.model_copy(update={"case": "q2"}),)},
        {"allow": (allow.model_copy(update={"until": dt.date(2026, 6, 2)}),)},
        {"acceptance": Acceptance()}, {"acceptance": Acceptance(quality=0.5)},
        {"floors": {"ndcg": 0.5}}, {"floors": {"ndcg": 0.6}}, {"floors": {"recall": 0.5}},
        {"gates": {"ndcg": Gate(tolerance=0.5)}}, {"gates": {"ndcg": Gate(tolerance=0.5, level="supporting")}},
        {"k_values": (1,)}, {"unit": "chunk"},
    ]  # fmt: skip
    assert len({policy_fingerprint(suite(**settings)) for settings in written}) == len(written)


@pytest.mark.parametrize(
    ("line", "metrics"),
    [
        ({}, {"contract", "leakage", "fidelity"}),
        ({"gates": {"ndcg@5": Gate(tolerance=0.1), "newly_failing": Gate(ceiling=0)}}, {"ndcg"}),
        ({"floors": {"recall": 0.5}}, {"recall"}),
        ({"slice": (Slice(by="language", metric="mrr", tolerance=0.1),)}, {"mrr"}),
        ({"acceptance": Acceptance()}, {"quality", "failing", "noise", "noisy"}),
    ],
)
def test_a_version_counts_where_its_metric_is_judged(line: dict[str, Any], metrics: set[str]) -> None:
    own = suite(**{"gates": {}, **line})
    before = policy_fingerprint(own)
    moved = set()
    for name, part in list(METRICS.items()):
        METRICS.remove(name)
        METRICS.add(name, dataclasses.replace(part, version=part.version + 1))
        try:
            if policy_fingerprint(own) != before:
                moved.add(name)
        finally:
            METRICS.remove(name)
            METRICS.add(name, part)
    assert moved == metrics | {"contract", "leakage", "fidelity"}


def test_order_does_not_matter_and_content_does() -> None:
    cards = {name: Card(name, "", "", hash=name * 2) for name in "ab"}
    cases = {name: Case(name, "?", hash=name * 2) for name in "ab"}
    assert kb_fingerprint(cards) == kb_fingerprint({name: cards[name] for name in "ba"})
    assert golden_fingerprint(cases) == golden_fingerprint({name: cases[name] for name in "ba"})
    assert kb_fingerprint(cards) != kb_fingerprint({**cards, "b": Card("b", "", "", hash="c")})
    assert golden_fingerprint(cases) != golden_fingerprint({**cases, "b": Case("b", "?", hash="c")})
