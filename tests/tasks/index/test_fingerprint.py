from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from kbgate.tasks.domain import Card, Case, Model
from kbgate.tasks.gate.policy import policy_fingerprint
from kbgate.tasks.index.fingerprint import golden_fingerprint, index_fingerprint, kb_fingerprint
from kbgate.tasks.settings import Embedding, Gate, IndexSettings, Retrieval, Suite
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


def test_order_does_not_matter_and_content_does() -> None:
    cards = {name: Card(name, "", "", hash=name * 2) for name in "ab"}
    cases = {name: Case(name, "?", hash=name * 2) for name in "ab"}
    assert kb_fingerprint(cards) == kb_fingerprint({name: cards[name] for name in "ba"})
    assert golden_fingerprint(cases) == golden_fingerprint({name: cases[name] for name in "ba"})
    assert kb_fingerprint(cards) != kb_fingerprint({**cards, "b": Card("b", "", "", hash="c")})
    assert golden_fingerprint(cases) != golden_fingerprint({**cases, "b": Case("b", "?", hash="c")})
