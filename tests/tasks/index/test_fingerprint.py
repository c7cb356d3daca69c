from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from kbgate.tasks.domain import Model
from kbgate.tasks.index.fingerprint import golden_fingerprint, index_fingerprint, kb_fingerprint, policy_fingerprint
from kbgate.tasks.settings import Embedding, Gate, IndexSettings, Retrieval, Suite

MODEL = Model("m", "w" * 64, Path())
VERSIONS = {"chunker": 1, "analyser": 1}


def suite(**settings: Any) -> Suite:
    return Suite(folder=Path(), name="x", **settings)


def rows(**first: Any) -> pd.DataFrame:
    return pd.DataFrame([{"id": "r1", "text": "t", "language": "en", "fields": {"tier": "gold"}, **first}])


MEMBERS = pd.DataFrame([{"row": "r1", "chunk": "c::00", "card": "c"}])


def test_the_index_is_known_by_what_is_searched() -> None:
    same = index_fingerprint(suite(), rows(), MEMBERS, MODEL, VERSIONS)
    assert same == index_fingerprint(suite(top_k=3, k_values=(3,), pass_mark=0.5), rows(), MEMBERS, MODEL, VERSIONS)
    others = {
        index_fingerprint(suite(), rows(text="u"), MEMBERS, MODEL, VERSIONS),
        index_fingerprint(suite(), rows(fields={}), MEMBERS, MODEL, VERSIONS),
        index_fingerprint(suite(), rows(), MEMBERS.assign(chunk="c::01"), MODEL, VERSIONS),
        index_fingerprint(suite(), rows(), MEMBERS, Model("m", "v" * 64, Path()), VERSIONS),
        index_fingerprint(suite(), rows(), MEMBERS, MODEL, {**VERSIONS, "chunker": 2}),
        index_fingerprint(suite(index=IndexSettings(ef_search=10)), rows(), MEMBERS, MODEL, VERSIONS),
        index_fingerprint(suite(embedding=Embedding(query_prefix="q: ")), rows(), MEMBERS, MODEL, VERSIONS),
    }
    assert len({same, *others}) == 8


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
    cases = pd.DataFrame({"id": ["a", "b"], "hash": ["1", "2"]})
    for fingerprint in (golden_fingerprint, kb_fingerprint):
        assert fingerprint(cases) == fingerprint(cases.iloc[::-1])
        assert fingerprint(cases) != fingerprint(cases.assign(hash=["1", "3"]))
