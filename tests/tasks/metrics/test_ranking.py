"""Known answers, properties over every registered metric, and trec_eval as an independent oracle."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from kbgate.tasks.baseline.rows import scores_by_case
from kbgate.tasks.domain import Outcome
from kbgate.tasks.metrics import METRICS, Judged, Metric
from kbgate.tasks.results import Placement, Run
from kbgate.tasks.retrieval.hybrid import fuse
from kbgate.tasks.runs.runfiles import trec_judgments, trec_run
from kbgate.tasks.settings import Suite
from kbgate.tasks.tables import Hits
from tests.exams import CARDS as DESK_CARDS
from tests.exams import Desk


def judged(ranking: Sequence[str], *groups: Sequence[str], grades: Mapping[str, float] | None = None, **more: object) -> Judged:
    golds = {card: 1.0 for group in groups for card in group}
    return Judged(tuple(ranking), tuple(map(frozenset, groups)), grades or golds, **more)  # type: ignore[arg-type]


def value(name: str, case: Judged, k: int = 5) -> float:
    found = METRICS[name].compute(case, k)
    assert found is not None
    return found


FOUR = [
    judged(["d8", "d3", "d9"], ["d3"]),
    judged(["d2", "d6", "d4", "d7", "d1"], ["d7", "d2"]),
    judged(["d11", "d1"], ["d11"]),
    judged(["d1", "d2", "d3", "d4", "d6", "d5"], ["d5"]),
]


@pytest.mark.parametrize(("name", "mean"), [("recall", 0.750), ("mrr", 0.625), ("ndcg", 0.627), ("hit", 0.750)])
def test_the_known_answers_of_four_questions(name: str, mean: float) -> None:
    assert round(sum(value(name, case) for case in FOUR) / 4, 3) == mean


def test_the_known_answers_of_rank_fusion() -> None:
    dense = [(card, 0.0) for card in ("d3", "d7", "d1", "d4", "d2", "d9", "d10")]
    sparse = [(card, 0.0) for card in ("d2", "d3", "d8", "d1", "d11", "d4", "d6")]
    fused = fuse([Hits.of(dense), Hits.of(sparse)], Suite(folder=Path(), name="x"))
    first = [(card, round(score, 5)) for card, score in fused.head(3).pairs()]
    assert first == [("d3", 0.03252), ("d2", 0.03178), ("d1", 0.03150)]
    assert fused.ids[4] == "d7"


def test_graded_gain_is_linear() -> None:
    assert round(value("ndcg", judged(["b", "a"], ["a", "b"], grades={"a": 2, "b": 1})), 4) == 0.8597


def test_contract_is_hit_for_one_of_and_recall_for_all_of() -> None:
    one_of, all_of = judged(["x", "a"], ["a", "b"]), judged(["x", "a"], ["a"], ["b"])
    assert value("contract", one_of) == value("hit", one_of) == 1.0
    assert value("contract", all_of) == value("recall", all_of) == 0.5
    assert value("contract", judged(["a2"], ["a", "a2"], ["b"])) == 0.5


def test_precision_is_over_k_also_for_short_lists() -> None:
    assert value("precision", judged(["a"], ["a"])) == 0.2


def test_translations_count_only_where_they_are_asked_for() -> None:
    case = judged(["a.es"], ["a"], family=frozenset({"a", "a.es"}))
    assert (value("hit", case), value("hit_any_language", case)) == (0.0, 1.0)


def test_tier_rr_is_the_first_curated_card() -> None:
    assert value("tier_rr", judged(["x", "g", "a"], ["a"], tier_gold=frozenset({"g"}))) == 0.5


def test_a_case_without_gold_has_no_ranking_figure() -> None:
    for part in METRICS.values():
        if part.judges_gold:
            assert part.compute(Judged(("a", "b")), 5) is None, part.name


CARDS = [f"c{n}" for n in range(8)]


@st.composite
def cases(draw: st.DrawFn) -> Judged:
    ranking = draw(st.permutations(CARDS))[: draw(st.integers(0, 8))]
    gold = draw(st.lists(st.sampled_from(CARDS), min_size=1, max_size=4, unique=True))
    cut = draw(st.integers(0, len(gold) - 1))
    groups = [g for g in (gold[:cut], gold[cut:]) if g]
    grades = {card: draw(st.integers(1, 3)) for card in gold}
    exact = draw(st.permutations(ranking))
    return judged(
        ranking, *groups, grades=grades, approximate=tuple(ranking), exact=tuple(exact), family=frozenset(gold),
        tier_gold=frozenset(CARDS[:2]), outside=draw(st.none() | st.integers(0, 3)),
        filtered_gold=frozenset(gold[:cut]), failed=draw(st.booleans()),
    )  # fmt: skip


def every_metric() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("part", METRICS.values(), ids=lambda part: part.name)


@every_metric()
@given(case=cases(), k=st.integers(1, 9))
def test_a_figure_stays_in_its_range(part: Metric, case: Judged, k: int) -> None:
    found = part.compute(case, k)
    assert found is None or (part.low <= found <= part.high and math.isfinite(found))


@every_metric()
@given(case=cases(), k=st.integers(1, 8), tail=st.permutations(CARDS))
def test_what_is_below_k_does_not_matter(part: Metric, case: Judged, k: int, tail: Sequence[str]) -> None:
    if not part.at_k:
        return
    other = tuple(dict.fromkeys([*case.ranking[:k], *tail])) if len(case.ranking) >= k else case.ranking
    changed = Judged(
        other, case.groups, case.grades, case.family, case.tier_gold, case.filtered_gold, case.outside,
        case.approximate, case.exact, case.failed,
    )  # fmt: skip
    assert part.compute(case, k) == part.compute(changed, k)


@every_metric()
@given(case=cases(), k=st.integers(1, 8), place=st.integers(1, 7))
def test_a_relevant_card_moved_up_never_worsens_it(part: Metric, case: Judged, k: int, place: int) -> None:
    if not part.monotone or place >= len(case.ranking):
        return
    upper, lower = case.ranking[place - 1], case.ranking[place]
    if case.grades.get(lower, 0) < case.grades.get(upper, 0) or lower not in case.grades:
        return
    swapped = [*case.ranking[: place - 1], lower, upper, *case.ranking[place + 1 :]]
    moved = judged(swapped, *case.groups, grades=case.grades, family=case.family, filtered_gold=case.filtered_gold)
    before, after = part.compute(case, k), part.compute(moved, k)
    if upper in case.grades and part.name in ("contract", "quality"):
        return  # two relevant cards of different groups swap places: the contract may trade one for the other
    if before is None:
        assert after is None
        return
    assert after is not None
    assert (after - before) * (1 if part.higher_is_better else -1) >= -1e-12


TREC = {"ndcg": "ndcg_cut", "recall": "recall", "precision": "P", "map": "map_cut", "hit": "success"}
"""Our name of a measure, and trec_eval's."""


def test_stored_figures_are_those_of_trec_eval_to_half_a_millionth(desk: Desk) -> None:
    """What a baseline holds is rounded to six decimals, and nothing else happens to it between the formula and the file."""
    draw, rankings, cuts = random.Random(12), {}, (1, 3, 5, 10)
    desk.settings = "top_k = 5\nk_values = [1, 3, 5, 10]\n"
    for number in range(120):
        golds = draw.sample(DESK_CARDS, draw.randint(1, 7))
        name = f"q{number}"
        desk.case(name, expected=golds) if number % 2 else desk.case(name, grades={card: draw.randint(1, 3) for card in golds})
        if number % 2 == 0:
            desk.cases[-1].pop("must_cite_one_of")
        cards = draw.sample(DESK_CARDS, draw.randint(0, 12))
        rankings[name] = "raised" if number % 40 == 0 else Hits.ranked({card: draw.randint(0, 6) / 10 for card in cards})
    exam = desk.exam(rankings)
    exported, qrels = trec_run(exam.run).splitlines(), trec_judgments(exam.scores.placements).splitlines()
    measures = {f"{measure}.{','.join(map(str, cuts))}" for measure in TREC.values()} | {"recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(qrels), measures)
    theirs, stored = evaluator.evaluate(pytrec_eval.parse_run(exported)), scores_by_case(exam)
    for name in rankings:
        first = theirs.get(name, {}).get("recip_rank", 0.0)
        for k in cuts:
            expected = {f"{ours}@{k}": theirs.get(name, {}).get(f"{measure}_{k}", 0.0) for ours, measure in TREC.items()}
            expected[f"mrr@{k}"] = first if first >= 1 / k - 1e-12 else 0.0
            for figure, value_of_theirs in expected.items():
                assert abs(stored[name][figure] - value_of_theirs) <= 5e-7 + 1e-12, (name, figure)


@pytest.mark.parametrize("graded", [False, True])
def test_ranking_figures_are_those_of_trec_eval(graded: bool) -> None:
    """1,000 runs drawn as (id, score) with ties, ranked by our code, exported, read back by trec_eval."""
    draw = random.Random(11)
    hits, placements, judgments = {}, {}, {}
    for number in range(1000):
        case = f"q{number}"
        cards = draw.sample(range(60), draw.randint(0, 40))
        hits[case] = Hits.ranked({f"d{card}": draw.randint(0, 12) / 10 for card in cards})
        grades = {f"d{card}": draw.randint(1, 3) if graded else 1 for card in draw.sample(range(60), draw.randint(1, 6))}
        placements[case] = Placement(case, "", case, False, False, Outcome.ANSWERED, (), grades, {}, (), (), (), {})
        judgments[case] = judged(hits[case].ids, list(grades), grades=grades)
    run = Run("exact", {}, {"exact": hits})
    exported, qrels = trec_run(run).splitlines(), trec_judgments(placements).splitlines()
    measures = {f"{measure}.5,10" for measure in TREC.values()} | {"recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(qrels), measures)
    theirs = evaluator.evaluate(pytrec_eval.parse_run(exported))
    for case, ours in judgments.items():
        for name, measure in TREC.items():
            for k in (5, 10):
                expected = theirs.get(case, {}).get(f"{measure}_{k}", 0.0)
                assert value(name, ours, k) == pytest.approx(expected, abs=1e-9), (case, name, k)
        assert value("mrr", ours, 60) == pytest.approx(theirs.get(case, {}).get("recip_rank", 0.0), abs=1e-9)
