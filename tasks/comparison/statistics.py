"""How sure a figure is: intervals, one-sided tests and the smallest fall that would have shown, all by cluster.

Cases of one cluster (translations and paraphrases of one question) move together and are resampled together. A table of n
cases x m figures is treated at once; NaN where a case has no such figure. Everything random is seeded: the same table gives
the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbgate.tasks.tables import Floats

CONFIDENCE = 0.95
ALPHA = 0.05
"""One-sided level of every test."""
POWER = 0.80
RESAMPLES = 5000
_ENUMERATED = 12
"""Clusters up to which every way to set their signs is looked at, and p is exact."""
_HALVINGS = 48
SEED = 20_260_601
_BLOCK = 2**24
"""Random numbers drawn at once: what fits the memory of a small machine."""
_TIE = 1e-9
_Z = 1.959963984540054
"""Of a normal distribution, what 2.5 % are above."""


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


def clusters_of(named: Mapping[str, str], questions: Mapping[str, str]) -> dict[str, str]:
    """The cluster of each case: the one it names; clusters that hold the same question (case and blanks aside) are one.

    Whoever writes a question twice and forgets the cluster has one question, and it fails and passes as one.
    """
    leader: dict[str, str] = {}

    def first(key: str) -> str:
        while leader.setdefault(key, key) != key:
            key = leader[key]
        return key

    for case, cluster in named.items():
        one, other = first(f"cluster {cluster}"), first(f"question {' '.join(questions[case].casefold().split())}")
        leader[max(one, other)] = min(one, other)
    return {case: first(f"cluster {cluster}").partition(" ")[2] for case, cluster in named.items()}


def by_cluster(values: Floats, clusters: NDArray[np.str_]) -> Clustered:
    """Sum the rows of `values` (cases x figures, NaN where undefined) over equal entries of `clusters`."""
    places, number = np.unique(clusters, return_inverse=True)
    defined = ~np.isnan(values)
    sums = np.zeros((len(places), values.shape[1]))
    sizes = np.zeros_like(sums)
    np.add.at(sums, number, np.where(defined, values, 0.0))
    np.add.at(sizes, number, defined.astype(float))
    return Clustered(sums, sizes)


def interval_of_change(table: Clustered, spans: Floats) -> tuple[Floats, Floats]:
    """95 % score intervals of each figure's mean change, by cluster, never of width zero.

    `spans`: how far a figure can go. What was won and what was lost are the discordant pairs of Tango's interval (1998), each
    as large as what usually moved, to which two clusters that went the whole way are counted, one either way: what never moved
    in n clusters may still move in the next. Of single cases that are 0 or 1 it is his interval.
    """
    furthest = np.abs(table.sums / np.maximum(table.sizes, 1)).max(axis=0, initial=0.0)
    scale = np.maximum(spans, furthest)
    sums = table.sums / scale
    n, whole = np.maximum(table.n, 1), table.n / np.maximum(table.clusters, 1)
    squares, moved = (sums**2).sum(axis=0), np.abs(sums).sum(axis=0)
    unit = (squares + 2 * whole**2) / np.maximum(moved + 2 * whole, _TIE)
    pairs = n / np.where(unit > 0, unit, 1.0)
    mean = sums.sum(axis=0) / n
    discordant = np.maximum(np.where(unit > 0, squares / np.maximum(unit, _TIE) ** 2, 0.0), np.abs(mean * pairs))
    directions = np.array([[-1.0], [1.0]])
    near, far = np.zeros((2, len(mean))), np.tile(1.0 + np.abs(mean), (2, 1))
    for _ in range(_HALVINGS):
        step = (near + far) / 2
        inside = step**2 <= _Z**2 * _variance(mean + directions * step, pairs, discordant, mean * pairs)
        near, far = np.where(inside, step, near), np.where(inside, far, step)
    low, high = scale * np.clip(mean + directions * far, -1.0, 1.0)
    return low, high


def _variance(change: Floats, pairs: Floats, discordant: Floats, net: Floats) -> Floats:
    """Of a mean change, were it this one: by the likeliest shares of losses and wins that differ by it (Tango 1998)."""
    won, lost = (discordant + net) / 2, (discordant - net) / 2
    line = (won + lost) * (1 - change) - 2 * change * (pairs - won)
    root = np.sqrt(np.maximum(line**2 + 8 * pairs * lost * change * (1 - change), 0.0))
    share = (line + root) / (4 * pairs)
    return np.asarray(np.maximum(2 * share + change - change**2, 0.0) / pairs)


def interval_of_mean(table: Clustered, lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
    """95 % intervals of each figure's mean, by cluster, inside its range and never of width zero.

    Of shares and other bounded figures the score interval (Wilson 1927) of as many cases as would make a share vary so; of
    counts, which have no upper end, the exact one of a Poisson total (Garwood 1936), wider where they vary more than by chance.
    """
    from scipy.special import gammaincinv

    n, clusters = np.maximum(table.n, 1), np.maximum(table.clusters, 1)
    mean = table.sums.sum(axis=0) / n
    spread = ((table.sums - mean * table.sizes) ** 2).sum(axis=0) / n**2
    span = np.where(np.isfinite(highs), highs - lows, 1.0)
    share = np.clip((mean - lows) / span, 0.0, 1.0)
    varies = (spread > _TIE**2) & (share * (1 - share) > 0)
    independent = np.where(varies, share * (1 - share) * span**2 / np.where(varies, spread, 1.0), clusters)
    ends = np.array([wilson(one, of) for one, of in zip(share.tolist(), independent.tolist(), strict=True)]).reshape(-1, 2)
    excess = np.maximum(np.where(mean > 0, spread * n / np.where(mean > 0, mean, 1.0), n / clusters), 1.0)
    total, tail = mean * n / excess, (1 - CONFIDENCE) / 2
    fewest = np.where(total > 0, gammaincinv(np.maximum(total, _TIE), tail), 0.0) * excess / n
    most = gammaincinv(total + 1, 1 - tail) * excess / n
    counts = ~np.isfinite(highs)
    return np.where(counts, lows + fewest, lows + ends[:, 0] * span), np.where(counts, lows + most, lows + ends[:, 1] * span)


def _blocks(width: int) -> list[int]:
    most = max(1, _BLOCK // max(width, 1))
    return [min(most, RESAMPLES - done) for done in range(0, RESAMPLES, most)]


def sign_flip(gains: Clustered, tolerances: Floats) -> Floats:
    """One-sided p of "no figure fell by more than its tolerance", by flipping the signs of clusters; 1 where nothing moved.

    `gains`: changes, above 0 for the better. Source: Fisher's randomisation test, one sign per cluster that moved; exact up to
    twelve of them.
    """
    moved = gains.sums + tolerances * gains.sizes
    observed = moved.sum(axis=0)
    few = (np.abs(moved) > _TIE).sum(axis=0) <= _ENUMERATED
    ps = np.ones(len(observed))
    for place in np.flatnonzero(few):
        column = moved[np.abs(moved[:, place]) > _TIE, place]
        signs = (np.arange(2 ** len(column))[:, None] >> np.arange(len(column)) & 1) * 2.0 - 1
        ps[place] = (signs @ column <= observed[place] + _TIE).mean()
    if few.all():
        return ps
    many, draw, reached = moved[:, ~few], np.random.default_rng(SEED), np.zeros(int((~few).sum()))
    for count in _blocks(len(many)):
        bits = np.unpackbits(np.frombuffer(draw.bytes(-(-count * len(many) // 8)), np.uint8))[: count * len(many)]
        signs = bits.reshape(count, len(many)).astype(float) * 2 - 1
        reached += (signs @ many <= observed[~few] + _TIE).sum(axis=0)
    ps[~few] = (1 + reached) / (1 + RESAMPLES)
    return ps


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
    z = _Z
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return float(max(0.0, min(middle - half, share))), float(min(1.0, max(middle + half, share)))


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
