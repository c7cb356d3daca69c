"""What intervals and tests cost: 100,000 cases x 12 figures, 5,000 resamples, beside scipy on one figure of 2,000 cases."""

from __future__ import annotations

import time

import numpy as np
from scipy import stats

from kbgate.tasks.comparison.statistics import RESAMPLES, by_cluster, interval_of_change, sign_flip


def test_a_hundred_thousand_cases() -> None:
    draw = np.random.default_rng(1)
    values, clusters = draw.choice([-1.0, 0.0, 0.0, 0.0, 1.0], (100_000, 12)), np.arange(100_000)
    begun = time.perf_counter()
    table = by_cluster(values, clusters)
    interval_of_change(table, np.ones(12))
    sign_flip(table, np.zeros(12))
    ours = time.perf_counter() - begun
    begun = time.perf_counter()
    stats.bootstrap((values[:2000, 0],), np.mean, n_resamples=RESAMPLES, method="percentile")
    theirs = time.perf_counter() - begun
    per_value = (ours / values.size) / (theirs / 2000)
    print(f"\n100,000 cases x 12 figures, {RESAMPLES} resamples: {ours:.1f} s; per case and figure {per_value:.2f} of scipy's")
