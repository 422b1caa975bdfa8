"""How evenly the channels of an equi-join work when its keys are skewed: hashed keys against spread ones."""

import numpy as np
from numpy.typing import NDArray

from penstock.routing import Copied, Copies, JoinSpread, Ring, joint_rates, spread_hot_keys
from penstock.sketches import LossyCounting
from penstock_lab.workloads.zipf import draw, zipf_shares

__all__ = ["comparisons", "skewed_join_work"]


def skewed_join_work(  # noqa: PLR0913 -- a setting
    channels: int,
    exponent: float,
    seed: int,
    *,
    keys: int = 16_384,
    tuples: int = 200_000,
    copied: Copied = "both",
    epsilon: float = 0.001,
) -> tuple[float, float]:
    """The busiest channel's comparisons over the mean: with keys by the ring alone, and with hot ones spread.

    Rates are counted by sketches in a warm-up; the work is that of other tuples. A comparison is a pair of
    tuples of one key.

    >>> plain, spread = skewed_join_work(8, 1.2, seed=7, tuples=50_000)
    >>> plain > 5, spread < 1.3
    (True, True)
    """
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 2**64, keys, dtype=np.uint64)
    shares, ring = zipf_shares(keys, exponent), Ring(channels, seed=seed)
    counted = []
    for _ in range(2):
        sketch = LossyCounting(epsilon)
        sketch.update(hashes[draw(rng, shares, tuples)])
        counted.append(sketch.items())
    left, right = draw(rng, shares, tuples), draw(rng, shares, tuples)
    nothing = JoinSpread(hashes[:0], *(np.zeros(0, np.int64),) * 2, np.zeros(0, np.int32), ring)
    found = []
    for router in (nothing, spread_hot_keys(*joint_rates(*counted), ring, copied)):
        salts = rng.integers(0, 2**64, (2, tuples), dtype=np.uint64)
        copies = router.left(hashes[left], salts[0]), router.right(hashes[right], salts[1])
        work = comparisons(left, copies[0], right, copies[1], channels)
        found.append(float(work.max() / work.mean()))
    return found[0], found[1]


def comparisons(
    left: NDArray[np.int64],
    left_copies: Copies,
    right: NDArray[np.int64],
    right_copies: Copies,
    channels: int,
) -> NDArray[np.float64]:
    """How many pairs of tuples of one key every channel has, from the keys of the tuples and their copies."""
    keys = 1 + int(max(left.max(), right.max()))
    tuples = [
        np.bincount(side[copies.rows] * channels + copies.channels, minlength=keys * channels)
        for side, copies in ((left, left_copies), (right, right_copies))
    ]
    work: NDArray[np.float64] = (tuples[0] * tuples[1]).reshape(keys, channels).sum(axis=0).astype(np.float64)
    return work
