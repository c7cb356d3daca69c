"""Intervals, tests and what would show, against scipy on the same data and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kbgate.tasks.comparison.statistics import (
    ALPHA,
    Floats,
    bootstrap,
    by_cluster,
    effective_n,
    holm,
    paired_shares,
    sign_flip,
    smallest_visible_fall,
    wilson,
)

ONE = np.ones(1)
NONE = np.zeros(1)


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
    fall = smallest_visible_fall(table)[0]
    assert 100 * fall == pytest.approx(points, abs=0.3)
    draw = np.random.default_rng(1)
    lost = (draw.random((n, 500)) < fall) * -1.0
    shown = (sign_flip(by_cluster(lost, np.arange(n)), np.zeros(500)) <= ALPHA).mean()
    assert shown == pytest.approx(0.8, abs=0.05)


def test_fewer_than_five_clusters_show_nothing() -> None:
    assert smallest_visible_fall(by_cluster(column(0.0, 0.0, 0.0, 0.0), np.arange(4)))[0] == 1.0


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
