"""Intervals, tests and what would show, against scipy on the same data and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kbgate.tasks.comparison.statistics import (
    ALPHA,
    RESAMPLES,
    Clustered,
    Floats,
    _blocks,
    _poisson_weights,
    bootstrap,
    by_cluster,
    effective_n,
    holm,
    paired_shares,
    sign_flip,
    smallest_visible_drop,
    wilson,
)

ONE = np.ones(1)
NONE = np.zeros(1)
PINNED = (-0.2349584, 0.0615209, 0.5984803, 0.2011343, 32.1274238)
"""Of one table: the interval's ends, p, the smallest visible drop, the effective n."""


def column(*values: float) -> Floats:
    return np.array(values, dtype=float)[:, None]


def test_two_hundred_cases_at_eighty_percent_are_known_to_five_and_a_half_points() -> None:
    low, high = wilson(0.8, 200)
    assert (high - low) / 2 == pytest.approx(0.055, abs=0.0005)


@given(n=st.integers(1, 500), share=st.floats(0, 1))
def test_the_score_interval_is_scipys(n: int, share: float) -> None:
    hits = round(share * n)
    theirs = stats.binomtest(hits, n).proportion_ci(method="wilson")
    low, high = wilson(hits / n, n)
    assert low == pytest.approx(theirs.low, abs=1e-9)
    assert high == pytest.approx(theirs.high, abs=1e-9)


def test_a_known_paired_interval() -> None:
    """36 stayed, 12 lost, 2 won, none failed in both: worked through by hand from the formula."""
    then = np.array([1.0] * 48 + [0.0] * 2)
    now = np.array([1.0] * 36 + [0.0] * 12 + [1.0] * 2)
    low, high = paired_shares(then, now, 50)
    assert (round(-high, 3), round(-low, 3)) == (0.057, 0.340)


@given(values=st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.0, 1.0]), min_size=1, max_size=40))
@settings(max_examples=40)
def test_an_interval_holds_its_figure_and_is_never_of_width_zero(values: list[float]) -> None:
    low, high = bootstrap(by_cluster(column(*values), np.arange(len(values))), ONE)
    assert low[0] < high[0]
    assert low[0] <= np.mean(values) <= high[0]


def test_the_bootstrap_is_scipys_but_for_the_two_imagined_cases() -> None:
    values = np.random.default_rng(5).normal(0.1, 0.5, 400)
    low, high = bootstrap(by_cluster(values[:, None], np.arange(400)), ONE)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", rng=np.random.default_rng(1)).confidence_interval
    assert low[0] == pytest.approx(theirs.low, abs=0.006)
    assert high[0] == pytest.approx(theirs.high, abs=0.006)


def test_the_test_is_scipys_on_the_same_data() -> None:
    values = np.random.default_rng(3).normal(-0.08, 0.4, 60)
    p = sign_flip(by_cluster(values[:, None], np.arange(60)), NONE)[0]
    theirs = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", alternative="less", n_resamples=20_000, rng=np.random.default_rng(2)
    )
    assert p == pytest.approx(theirs.pvalue, abs=0.01)


def test_what_did_not_move_has_a_p_of_one_and_the_same_table_the_same_answer() -> None:
    table = by_cluster(column(*[0.0] * 30), np.arange(30))
    assert sign_flip(table, NONE)[0] == 1.0
    moved = by_cluster(column(*[-1.0] * 5, *[0.0] * 25), np.arange(30))
    assert sign_flip(moved, NONE)[0] == sign_flip(moved, NONE)[0] < ALPHA


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_a_fall_of_just_the_tolerance_is_called_one_in_a_twentieth_of_the_nights_at_most(size: int, tolerance: float) -> None:
    """Translations move together: resampled case by case, the same test would call 23 % of these a fall."""
    draw, clusters = np.random.default_rng(9), np.repeat(np.arange(80), size)
    night = draw.normal(-tolerance, 0.2, (80, 600)).repeat(size, axis=0) + draw.normal(0, 0.02, (80 * size, 600))
    called = (sign_flip(by_cluster(night, clusters), np.full(600, tolerance)) <= ALPHA).mean()
    assert called <= ALPHA + 0.02  # alpha + 1 point, and the error of 600 nights
    if size == 3 and tolerance == 0.0:
        assert (sign_flip(by_cluster(night, np.arange(240)), np.zeros(600)) <= ALPHA).mean() > 0.1


@pytest.mark.parametrize(("n", "points"), [(50, 13.0), (216, 3.1)])
def test_the_fall_that_would_have_shown(n: int, points: float) -> None:
    table = by_cluster(column(*[0.0] * n), np.arange(n))
    fall = smallest_visible_drop(table)[0]
    assert 100 * fall == pytest.approx(points, abs=0.3)
    draw = np.random.default_rng(1)
    lost = (draw.random((n, 500)) < fall) * -1.0
    shown = (sign_flip(by_cluster(lost, np.arange(n)), np.zeros(500)) <= ALPHA).mean()
    assert shown == pytest.approx(0.8, abs=0.05)


def test_fewer_than_five_clusters_show_nothing() -> None:
    assert smallest_visible_drop(by_cluster(column(0.0, 0.0, 0.0, 0.0), np.arange(4)))[0] == 1.0


def test_three_translations_that_move_together_say_as_much_as_one_case() -> None:
    moves = np.random.default_rng(2).choice([-1.0, 0.0, 1.0], 50).repeat(3)
    assert effective_n(by_cluster(moves[:, None], np.repeat(np.arange(50), 3)))[0] == pytest.approx(50, rel=0.05)
    assert effective_n(by_cluster(moves[:, None], np.arange(150)))[0] == pytest.approx(150, rel=0.01)
    assert effective_n(by_cluster(column(*[0.0] * 6), np.array([0, 0, 0, 1, 1, 1])))[0] == 2.0


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_what_never_moved_is_as_uncertain_as_its_clusters_are_few() -> None:
    still = np.zeros((60, 1))
    alone, together = (bootstrap(by_cluster(still, ids), ONE)[1][0] for ids in (np.arange(60), np.repeat(np.arange(20), 3)))
    assert together == pytest.approx(3 * alone, rel=0.15)


@pytest.mark.parametrize(
    ("both", "lost", "won", "neither", "low", "high"),
    [
        (14, 5, 0, 22, 0.011, 0.226),
        (1, 1, 7, 12, -0.507, -0.026),
        (59, 6, 16, 80, -0.119, -0.005),
        (20, 8, 2, 10, -0.006, 0.295),
    ],
)
def test_paired_intervals_of_the_textbooks(both: int, lost: int, won: int, neither: int, low: float, high: float) -> None:
    """Altman et al. 2000, table 6.2; Fagerland et al. 2014, twice; and one worked through by hand.

    Agreement beyond chance is corrected by half a case: by hand, 20 x 10 - 8 x 2 - 40/2 = 164 over the root of 28 x 12 x
    22 x 18. In the second it is less than that half, and counts as none.
    """
    then = np.array([1.0] * (both + lost) + [0.0] * (won + neither))
    now = np.array([1.0] * both + [0.0] * lost + [1.0] * won + [0.0] * neither)
    found = paired_shares(then, now, len(then))
    assert (round(-found[1], 3), round(-found[0], 3)) == (low, high)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_shares_that_stayed_as_they_were_have_an_interval_around_nothing(share: float) -> None:
    """All right or all wrong, in both: Wilson's half is z2 / (n + z2) on either side."""
    same = np.full(20, share)
    low, high = paired_shares(same, same, 20)
    assert (low, high) == (pytest.approx(-0.161, abs=0.0005), pytest.approx(0.161, abs=0.0005))


def test_a_share_that_turned_round_whole_ends_at_one() -> None:
    low, high = paired_shares(np.ones(5), np.zeros(5), 5)
    assert low == -1.0
    assert -1.0 < high < 0.0


def test_cases_in_clusters_of_unlike_size_by_hand() -> None:
    """(1, 1, 1) and (0): sums lie 0.75 from 2.25 and from 0.75, 1.125 in squares; over single cases 9 / 3 - 9 / 4 = 0.75."""
    assert effective_n(by_cluster(column(1.0, 1.0, 1.0, 0.0), np.array([0, 0, 0, 1])))[0] == pytest.approx(4 / 1.5)


@given(values=st.lists(st.tuples(st.sampled_from([-1.0, -0.5, 0.0, 1.0, np.nan]), st.integers(0, 4)), min_size=1, max_size=20))
@settings(max_examples=60)
def test_so_many_cases_never_say_more_than_so_many(values: list[tuple[float, int]]) -> None:
    table = by_cluster(column(*[value for value, _ in values]), np.array([cluster for _, cluster in values]))
    assert 1.0 <= effective_n(table)[0] <= max(table.n[0], 1.0)


@pytest.mark.parametrize(("weight", "most"), [(0.5, 1.0), (0.25, 1.0), (1.0, 2.0)])
def test_a_table_whose_cases_count_in_part_says_no_more_than_its_whole(weight: float, most: float) -> None:
    """Two clusters, each of half a case: one case, and not two."""
    assert effective_n(Clustered(np.array([[weight], [0.0]]), np.full((2, 1), weight)))[0] == most


def test_no_case_is_worth_less_than_one_and_none_at_all_no_division_by_nothing() -> None:
    nothing = by_cluster(np.full((3, 1), np.nan), np.arange(3))
    assert (nothing.n[0], nothing.clusters[0]) == (0, 0)
    assert effective_n(nothing)[0] == 1.0
    assert smallest_visible_drop(nothing)[0] == 1.0
    assert sign_flip(nothing, NONE)[0] == 1.0
    assert effective_n(by_cluster(column(1.0, 1.0, 0.0), np.array([0, 0, 0])))[0] >= 1.0


def test_the_effective_number_of_cases_by_hand() -> None:
    """Two clusters, (1, 1) and (0, 0): sums lie 1 from the mean, 1 + 1 = 2; single cases 2 + 0 - 4 / 4 = 1; 4 / 2 = 2."""
    assert effective_n(by_cluster(column(1.0, 1.0, 0.0, 0.0), np.array([0, 0, 1, 1])))[0] == pytest.approx(2.0)


@pytest.mark.parametrize(("tolerance", "p"), [(0.0, 1 / 32), (0.5, 1 / 32), (1.0, 1.0)])
def test_p_by_hand(tolerance: float, p: float) -> None:
    """Five lost of five: only one of 32 ways to set the signs falls as far, unless the tolerance explains all of it."""
    table = by_cluster(column(*[-1.0] * 5), np.arange(5))
    assert sign_flip(table, np.array([tolerance]))[0] == pytest.approx(p, abs=0.008)


def test_p_of_a_tolerance_counts_cases_and_not_clusters() -> None:
    """Each of five clusters of two lost 1 of 2: what 0.5 a case allows, and nothing beyond it."""
    table = by_cluster(column(*[-1.0, 0.0] * 5), np.arange(5).repeat(2))
    assert sign_flip(table, np.array([0.5]))[0] == 1.0
    assert sign_flip(table, np.array([0.4]))[0] == pytest.approx(1 / 32, abs=0.008)


def test_what_got_better_is_no_fall() -> None:
    assert sign_flip(by_cluster(column(*[1.0] * 10), np.arange(10)), NONE)[0] > 0.99


def test_figures_of_a_table_do_not_disturb_each_other() -> None:
    """Each column as if it stood alone, also where cases lack one of them."""
    one, other = column(-1.0, 0.0, 0.0, -1.0, 0.0, 0.0), column(0.5, np.nan, 0.5, np.nan, 0.0, 1.0)
    both = by_cluster(np.hstack([one, other]), np.arange(6))
    assert both.n.tolist() == [6.0, 4.0]
    for place, values in enumerate((one, other)):
        alone = by_cluster(values, np.arange(6))
        assert effective_n(both)[place] == effective_n(alone)[0]
        assert smallest_visible_drop(both)[place] == pytest.approx(smallest_visible_drop(alone)[0])
        low, high = bootstrap(both, np.ones(2))
        assert low[place] < np.nanmean(values) < high[place]


@pytest.mark.parametrize(("n", "fall"), [(5, 0.956), (6, 0.860), (10, 0.581)])
def test_five_lost_clusters_are_the_fewest_a_test_calls_a_fall(n: int, fall: float) -> None:
    """At least five of n must be lost in 80 % of nights; of five, each with the fifth root of 0.8."""
    still = by_cluster(column(*[0.0] * n), np.arange(n))
    assert smallest_visible_drop(still)[0] == pytest.approx(fall, abs=0.001)
    assert stats.binom.sf(4, n, fall) == pytest.approx(0.8, abs=0.002)


def test_what_moves_beside_hides_a_fall() -> None:
    """Fifty cases, half of them 0.5 up and half down: 1.645 standard errors of 0.0707, and what the fall itself adds."""
    noisy = by_cluster(column(*[0.5, -0.5] * 25), np.arange(50))
    fall = smallest_visible_drop(noisy)[0]
    assert fall == pytest.approx(1.645 * 0.0707 + 0.842 * (0.0707**2 + fall * (1 - fall) / 50) ** 0.5, abs=0.002)


def test_weights_are_those_of_a_poisson_distribution() -> None:
    """65,536 equally likely draws: as many of each weight as scipy's probabilities say, to the draw; on average one."""
    weights = _poisson_weights()
    counts = np.bincount(weights.astype(int))
    assert len(weights) == 2**16
    assert np.abs(counts - 2**16 * stats.poisson.pmf(np.arange(len(counts)), 1.0)).max() <= 1.0
    assert weights.mean() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("n", [3, 40])
def test_what_never_moved_may_have_moved_as_far_either_way(n: int) -> None:
    low, high = bootstrap(by_cluster(column(*[0.0] * n), np.arange(n)), ONE)
    assert -low[0] == pytest.approx(high[0], rel=0.1)


def test_drawn_in_blocks_or_at_once_an_interval_is_of_all_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 50 and of all: other draws, the same number of them, and so the same interval but for chance."""
    table = by_cluster(np.random.default_rng(4).normal(0, 1, (30, 1)), np.arange(30))
    at_once = bootstrap(table, ONE)
    assert sum(_blocks(32)) == RESAMPLES
    monkeypatch.setattr("kbgate.tasks.comparison.statistics._BLOCK", 50 * 32)
    assert _blocks(32) == [50] * (RESAMPLES // 50)
    assert np.array(bootstrap(table, ONE)) == pytest.approx(np.array(at_once), abs=0.03)
    assert sum(_blocks(3)) == RESAMPLES  # the last one is what is left


def test_the_same_table_gives_the_same_figures_in_every_version() -> None:
    """Seeds are fixed: a figure in a committed report can be had again. Other figures here are another version."""
    draw = np.random.default_rng(11)
    values = draw.choice([-1.0, -0.5, 0.0, 0.0, 0.5], (60, 1))
    table = by_cluster(values, draw.integers(0, 40, 60))
    low, high = bootstrap(table, ONE)
    assert (low[0], high[0]) == (pytest.approx(PINNED[0], abs=1e-6), pytest.approx(PINNED[1], abs=1e-6))
    assert sign_flip(table, np.array([0.1]))[0] == pytest.approx(PINNED[2], abs=1e-6)
    assert smallest_visible_drop(table)[0] == pytest.approx(PINNED[3], abs=1e-6)
    assert effective_n(table)[0] == pytest.approx(PINNED[4], abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7, 10, 49, 200, 499])
def test_an_interval_of_all_or_nothing_reaches_it(n: int) -> None:
    """Whatever the last bit of a root says."""
    assert all(wilson(1.0, size)[1] == 1.0 and wilson(0.0, size)[0] == 0.0 for size in range(n, n + 60))


@given(before=st.lists(st.booleans(), min_size=1, max_size=12), after=st.data())
def test_a_change_of_shares_is_at_most_whole(before: list[bool], after: st.DataObject) -> None:
    now = after.draw(st.lists(st.booleans(), min_size=len(before), max_size=len(before)))
    low, high = paired_shares(np.array(before, dtype=float), np.array(now, dtype=float), len(before))
    assert -1.0 <= low <= np.mean(now) - np.mean(before) <= high <= 1.0


@pytest.mark.parametrize("turned", [1.0, -1.0])
def test_a_share_that_turned_round_whole_ends_at_one_either_way(turned: float) -> None:
    then, now = (np.zeros(5), np.ones(5)) if turned > 0 else (np.ones(5), np.zeros(5))
    assert turned in paired_shares(then, now, 5)


def test_holm_never_lets_a_later_one_be_surer_than_an_earlier() -> None:
    assert holm([0.2, 0.01, 0.02, 0.02]) == pytest.approx([0.2, 0.04, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([0.05]) == [0.05]


@pytest.mark.parametrize(
    ("share", "n", "low", "high"), [(0.0, 10, 0.0, 0.278), (1.0, 10, 0.722, 1.0), (0.5, 2.5, 0.111, 0.889)]
)
def test_score_intervals_by_hand(share: float, n: float, low: float, high: float) -> None:
    """z2 = 3.8415; none of ten ends at 3.8415 / 13.8415."""
    found = wilson(share, n)
    assert (round(found[0], 3), round(found[1], 3)) == (low, high)
