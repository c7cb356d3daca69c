"""A retrieval method is one function: what its scores are, its lanes, settings and versions it says of itself."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kbgate.tasks import exam
from kbgate.tasks.domain import Index, Question
from kbgate.tasks.inputs.suite import load_suite
from kbgate.tasks.retrieval import RETRIEVERS, ScoreKind, Search, retriever
from kbgate.tasks.retrieval.eligible import Eligible
from kbgate.tasks.retrieval.hybrid import fuse
from kbgate.tasks.retrieval.lanes import search_lane, search_lanes
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Hits
from tests.parts.school import School


def bring_titles() -> None:
    @retriever("titles", scores=ScoreKind.OTHER, vectors=False)
    def titles(index: Index, suite: Suite) -> Search:
        """Words that the question shares with a card's title."""
        eligible = Eligible(index.rows)
        words = [frozenset(text.split("\n")[0].lower().split()) for text in index.rows.texts]

        def ask(question: Question, count: int) -> Hits:
            asked = frozenset(question.text.lower().split())
            rows = zip(index.rows.ids, words, eligible.rows(question.where), strict=True)
            return Hits.ranked({row: float(len(asked & of_row)) for row, of_row, may in rows if may}).head(count)

        return search_lane("titles", index.rows, suite.retrieval.candidates, ask)


def test_a_method_with_scores_of_its_own_kind(school: School) -> None:
    bring_titles()
    school.method = "titles"
    school.walk()
    assert school.verdict["method"] == "titles"
    assert school.verdict["provenance"]["model"] == {"name": "", "weights": ""}
    assert school.run("inspect") == 0
    assert school.run("calibrate", "--repeats", "1") == 0


@pytest.mark.parametrize("lanes", [pytest.param(("exact", "bm25"), marks=pytest.mark.slow), ("titles", "bm25")])
def test_a_method_that_fuses_others(lanes: tuple[str, ...], school: School) -> None:
    bring_titles()

    @retriever("both", scores=ScoreKind.FUSED, lanes=lanes, fuse=fuse, settings=("candidates", "rrf_k"))
    def both(index: Index, suite: Suite) -> Search:
        """Two lanes fused by reciprocal rank."""
        return search_lanes("both", index, suite)

    school.method = "both"
    school.walk()
    assert {row["lane"] for row in school.figures("contract@3")} == {"both", *lanes}


def words_of_my_own(versions: Mapping[str, int], settings: tuple[str, ...] = ("candidates",)) -> None:
    if "own" in RETRIEVERS:
        RETRIEVERS.remove("own")

    @retriever("own", scores=ScoreKind.BM25, vectors=False, short_list_is_legal=True, versions=versions, settings=settings)
    def own(index: Index, suite: Suite) -> Search:
        """BM25 under another name."""
        return RETRIEVERS["bm25"].connect(index, suite)


def test_its_versions_are_part_of_the_index_and_of_how_cards_become_rankings(school: School) -> None:
    school.method = "own"
    words_of_my_own({"own": 1})
    school.write()
    inputs = exam.load(load_suite(school.folder), school.home)
    first = exam.prepare(inputs, school.home)
    words_of_my_own({"own": 1})
    assert exam.prepare(inputs, school.home).fingerprint == first.fingerprint
    for versions in ({"own": 2}, {"own": 1, "chunker": 2}, {"own": 1, "chunker": 1}):
        words_of_my_own(versions)
        anew = exam.prepare(inputs, school.home)
        assert anew.fingerprint != first.fingerprint
        assert anew.settings != first.settings


def test_the_settings_it_names_are_part_of_the_policy(school: School) -> None:
    def policies(*settings: str) -> list[str]:
        words_of_my_own({}, settings)
        found = []
        for least in (60, 61):
            school.write()
            path = school.folder / "suite.toml"
            path.write_text(path.read_text().replace("[retrieval]", f"[retrieval]\nrrf_k = {least}"))
            found.append(school.policy)
        return found

    school.method = "own"
    one, other = policies("candidates")
    assert one == other
    one, other = policies("candidates", "rrf_k")
    assert one != other


def test_what_it_cannot_say_of_itself_is_refused_when_it_is_declared() -> None:
    def connect(index: Index, suite: Suite) -> Search:
        """Nothing."""
        raise NotImplementedError

    with pytest.raises(ValueError, match=r"'own' names the settings \['alpha'\], which \[retrieval\] does not have"):
        retriever("own", scores=ScoreKind.OTHER, settings=("candidates", "alpha"))(connect)
    with pytest.raises(ValueError, match="'own' has lanes and does not say how it fuses them"):
        retriever("own", scores=ScoreKind.FUSED, lanes=("bm25",))(connect)
    assert "own" not in RETRIEVERS
