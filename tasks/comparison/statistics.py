"""How sure a figure is: intervals, one-sided tests and the smallest fall that would have shown, all by cluster.

Cases of one cluster (translations and paraphrases of one question) move together and are resampled together. A table of n
cases x m figures is treated at once; NaN where a case has no such figure. Everything random is seeded: the same table gives
the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from kbgate.tasks.tables import Floats

CONFIDENCE = 0.95
ALPHA = 0.05
"""One-sided level of every test."""
POWER = 0.80
RESAMPLES = 5000
SEED = 20_260_601
_BLOCK = 2**24
"""Random numbers drawn at once: what fits the memory of a small machine."""
_TIE = 1e-9


@dataclass(frozen=True)
class Clustered:
    """A table of per-case values summed by cluster."""

    sums: Floats  # clusters x figures
    sizes: Floats  # clusters x figures: cases that have the figure

    @property
    def n(self) -> Floats:
        """Cases, by figure."""
        return np.asarray(self.sizes.sum(axis=0))

    @property
    def clusters(self) -> Floats:
        """Clusters, by figure."""
        return np.asarray((self.sizes > 0).sum(axis=0))


def by_cluster(values: Floats, clusters: NDArray[np.str_]) -> Clustered:
    """Sum the rows of `values` (cases x figures, NaN where undefined) over equal entries of `clusters`."""
    places, number = np.unique(clusters, return_inverse=True)
    defined = ~np.isnan(values)
    sums = np.zeros((len(places), values.shape[1]))
    sizes = np.zeros_like(sums)
    np.add.at(sums, number, np.where(defined, values, 0.0))
    np.add.at(sizes, number, defined.astype(float))
    return Clustered(sums, sizes)


def bootstrap(table: Clustered, spans: Floats) -> tuple[Floats, Floats]:
    """95 % percentile intervals of each figure's mean, resampled by cluster, never of width zero.

    `spans`: how far a figure can go. Two imagined clusters of the usual size, one a whole span better and one a whole span
    worse, are resampled too: what never moved in n cases may still move in the next (Bonett & Price 2012 add the same two
    to paired shares).
    Poisson weights stand in for multinomial ones (Chamandy et al. 2012).
    """
    mean = table.sums.sum(axis=0) / np.maximum(table.n, 1)
    size = table.n / np.maximum(table.clusters, 1)
    sums = np.vstack([table.sums, size * (mean + spans), size * (mean - spans)])
    sizes = np.vstack([table.sizes, size, size])
    draw, weights = np.random.default_rng(SEED), _poisson_weights()
    means = []
    for count in _blocks(len(sums)):
        drawn = weights[draw.integers(0, len(weights), (count, len(sums)), dtype=np.uint16)]
        totals = drawn @ sizes
        means.append(np.where(totals > 0, drawn @ sums / np.maximum(totals, 1), mean))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail], axis=0)
    return np.minimum(low, mean), np.maximum(high, mean)


@cache
def _poisson_weights() -> Floats:
    """65,536 equally likely draws from a Poisson distribution of mean 1."""
    from scipy.special import pdtr

    ladder = pdtr(np.arange(12), 1.0)
    return np.searchsorted(ladder, (np.arange(2**16) + 0.5) / 2**16).astype(float)


def _blocks(width: int) -> list[int]:
    most = max(1, _BLOCK // max(width, 1))
    return [min(most, RESAMPLES - done) for done in range(0, RESAMPLES, most)]


def sign_flip(gains: Clustered, tolerances: Floats) -> Floats:
    """One-sided p of "no figure fell by more than its tolerance", by flipping the signs of clusters; 1 where nothing moved.

    `gains`: changes, above 0 for the better. Source: Fisher's randomisation test, one sign per cluster.
    """
    moved = gains.sums + tolerances * gains.sizes
    observed = moved.sum(axis=0)
    draw, reached = np.random.default_rng(SEED), np.zeros(len(observed))
    for count in _blocks(len(moved)):
        bits = np.unpackbits(np.frombuffer(draw.bytes(-(-count * len(moved) // 8)), np.uint8))[: count * len(moved)]
        signs = bits.reshape(count, len(moved)).astype(float) * 2 - 1
        reached += (signs @ moved <= observed + _TIE).sum(axis=0)
    return np.asarray((1 + reached) / (1 + RESAMPLES))


def holm(ps: list[float]) -> list[float]:
    """P values adjusted for being several, so that one of them is below 0.05 by chance in 5 % of nights (Holm 1979)."""
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    adjusted, so_far = [1.0] * len(ps), 0.0
    for rank, place in enumerate(order):
        so_far = max(so_far, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = so_far
    return adjusted


def wilson(share: float, n: float) -> tuple[float, float]:
    """95 % score interval of a share (Wilson 1927); n may be an effective number of cases."""
    z = _z(1 - (1 - CONFIDENCE) / 2)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return float(max(0.0, min(middle - half, share))), float(min(1.0, max(middle + half, share)))


def paired_shares(then: Floats, now: Floats, n: float) -> tuple[float, float]:
    """95 % interval of the change of a share over the same cases, by squared Wilson halves (Newcombe 1998, method 10).

    `then`, `now`: 0 or 1 per case; `n`: the effective number of cases.
    """
    before, after = float(then.mean()), float(now.mean())
    both, neither = float((then * now).mean()) * n, float(((1 - then) * (1 - now)).mean()) * n
    lost, won = float((then * (1 - now)).mean()) * n, float(((1 - then) * now).mean()) * n
    (low1, high1), (low2, high2) = wilson(before, n), wilson(after, n)
    margins = (both + lost) * (won + neither) * (both + won) * (lost + neither)
    surplus = both * neither - lost * won
    phi = 0.0 if margins <= 0 else (max(surplus - n / 2, 0.0) if surplus > 0 else surplus) / np.sqrt(margins)
    delta = after - before
    down = np.sqrt(max(0.0, (after - low2) ** 2 - 2 * phi * (after - low2) * (high1 - before) + (high1 - before) ** 2))
    up = np.sqrt(max(0.0, (high2 - after) ** 2 - 2 * phi * (high2 - after) * (before - low1) + (before - low1) ** 2))
    return float(max(-1.0, delta - down)), float(min(1.0, delta + up))


def effective_n(table: Clustered) -> Floats:
    """Independent cases that say as much as these clustered ones: n over the design effect; clusters where nothing varies."""
    n, clusters = table.n, table.clusters
    mean = table.sums.sum(axis=0) / np.maximum(n, 1)
    between = ((table.sums - mean * table.sizes) ** 2).sum(axis=0)
    single = np.where(table.sizes > 0, table.sums**2 / np.maximum(table.sizes, 1), 0.0).sum(axis=0) - n * mean**2
    effect = np.where((between > _TIE) & (single > _TIE), between / np.maximum(single, _TIE), n / np.maximum(clusters, 1))
    return np.asarray(np.clip(n / np.maximum(effect, 1.0), 1.0, np.maximum(n, 1.0)))


def smallest_visible_drop(gains: Clustered) -> Floats:
    """The smallest true fall that a test at 5 % would have shown in 80 % of such golden sets, whole answers being lost.

    Where nothing else moves, five lost clusters are the fewest a sign test calls a fall; what moved beside hides more.
    1 where no fall could show.
    """
    from scipy.special import betaincinv

    n = gains.clusters.astype(float)
    fewest = int(np.ceil(np.log2(1 / ALPHA)))
    # P(at least m of n clusters lose) = I_f(m, n - m + 1)
    alone = np.where(n >= fewest, betaincinv(fewest, np.maximum(n - fewest, 0) + 1, POWER), 1.0)
    mean = gains.sums.sum(axis=0) / np.maximum(gains.n, 1)
    noise = np.sqrt(((gains.sums - mean * gains.sizes) ** 2).sum(axis=0)) / np.maximum(gains.n, 1)
    drop = alone
    for _ in range(50):
        spread = np.sqrt(noise**2 + drop * (1 - np.minimum(drop, 1)) / np.maximum(n, 1))
        drop = np.minimum(1.0, _z(1 - ALPHA) * noise + _z(POWER) * spread)
    return np.where(n > 0, np.maximum(alone, np.where(noise > _TIE, drop, 0.0)), 1.0)


def _z(share: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(share))
