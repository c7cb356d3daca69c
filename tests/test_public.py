"""Public collections, written by no one here: known figures come out, and a second build gives the same ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.conftest import last_verdict, run_named

pytestmark = pytest.mark.slow
CLI = Callable[..., int]
Collection = Callable[[str], Path]


@pytest.fixture
def scifact(collection: Collection, tmp_path: Path) -> Callable[[str, str], Path]:
    """A suite over SciFact in a folder of its own: the collection itself is read only."""
    cards = collection("scifact")

    def make(method: str, chunking: str) -> Path:
        folder = tmp_path / "scifact"
        folder.mkdir(exist_ok=True)
        (folder / "suite.toml").write_text(
            f'name = "scifact"\n[kb]\npath = "{cards}"\n[chunking]\nmethod = "{chunking}"\n[retrieval]\nmethod = "{method}"\n'
        )
        return folder

    return make


def means(home: Path) -> dict[str, float]:
    verdict = last_verdict(home, "scifact")
    own = [f for f in verdict["figures"] if f["lane"] == verdict["method"] and not f["slice"]]
    return {f["metric"]: f["current"] for f in own}


def top_tens(home: Path, suite: str = "scifact") -> dict[str, tuple[str, ...]]:
    run = run_named(home, last_verdict(home, suite)["run"], suite)
    table = pd.read_parquet(run / "run.parquet").query("rank <= 10").sort_values(["case", "rank"])
    return {str(case): tuple(cards) for case, cards in table.groupby("case")["card"]}


def test_whole_abstracts_reproduce_the_published_figures(scifact: Any, kbgate: CLI, home: Path) -> None:
    assert kbgate("evaluate", scifact("exact", "whole")) == 3
    found = means(home)
    assert found["ndcg@10"] == pytest.approx(0.645, abs=0.002)
    assert found["recall@10"] == pytest.approx(0.783, abs=0.002)
    exact = top_tens(home)
    assert kbgate("evaluate", scifact("dense", "whole")) == 3
    dense = top_tens(home)
    same = sum(set(dense[case]) == set(exact[case]) for case in exact)
    assert same >= 0.99 * len(exact)
    assert kbgate("evaluate", scifact("bm25", "whole")) == 3
    assert 0.66 <= means(home)["ndcg@10"] <= 0.69


def test_chunks_with_the_hybrid_method_rank_alike_at_every_build(
    collection: Collection, kbgate: CLI, home: Path, tmp_path: Path
) -> None:
    """Pages of real manuals, cut into chunks; over SciFact the same takes ten minutes to embed."""
    cards = collection("azure-contoso-hr")
    (tmp_path / "suite.toml").write_text(f'name = "contoso"\n[kb]\npath = "{cards}"\n')
    assert kbgate("baseline", "update", tmp_path, "--reason", "first") == 0
    first = top_tens(home, "contoso")
    for _ in range(2):
        assert kbgate("evaluate", tmp_path) == 0
        assert last_verdict(home, "contoso")["verdict"] == "PASS"
        assert top_tens(home, "contoso") == first


@pytest.mark.parametrize("name", ["azure-contoso-hr", "faquad"])
def test_other_collections_run_as_they_are(name: str, collection: Collection, kbgate: CLI, home: Path) -> None:
    assert kbgate("check", collection(name)) == 0
    assert kbgate("evaluate", collection(name)) == 3
    verdict = last_verdict(home, name)
    assert set(verdict["outcomes"]) == {"answered"}
    assert [reason["code"] for reason in verdict["reasons"]] == ["no_baseline"]
