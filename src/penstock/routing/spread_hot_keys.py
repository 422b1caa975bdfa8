"""Which keys of an equi-join are spread, and over which channels, so that all channels do the same work.

The work of a key is its left rate times its right rate. It is cut into pieces, each no more than a part of a
channel's fair share as far as there are channels; the pieces of a key go to the least loaded channels, the
largest first, then whole keys in descending order. The busiest channel exceeds the mean by at most about a
piece, plus the errors of the rates and the load of keys without a rate ([002] §III.D).
"""

import numpy as np

from penstock.errors import BadRouting
from penstock.routing.join_grid import Copied, cell_parts, is_judged, shaped_grid
from penstock.routing.join_spread import JoinSpread, Numbers
from penstock.routing.longest_first import longest_first
from penstock.routing.ring import Ring
from penstock.routing.router import Channels, Costs, Hashes
from penstock.sketches.counted import Counted

__all__ = ["joint_rates", "spread_hot_keys"]


def joint_rates(left: Counted, right: Counted) -> tuple[Hashes, Costs, Costs]:
    """The keys that either side counted, each once, with the shares of the left and the right tuples.

    A key that only one side counted is as frequent on the other as what that side may have missed.
    """
    keys: Hashes = np.union1d(left.hashes, right.hashes)
    return keys, _shares(keys, left), _shares(keys, right)


def _shares(keys: Hashes, counted: Counted) -> Costs:
    shares = np.full(len(keys), 0.0)
    if len(counted):
        shares += float(counted.errors.max()) / max(counted.total, 1e-300)
        shares[np.searchsorted(keys, counted.hashes)] = counted.frequencies
    return shares


def spread_hot_keys(  # noqa: PLR0913 -- keys with two rates, where to, and what may be copied
    keys: Hashes, left: Costs, right: Costs, ring: Ring, copied: Copied = "both", *, piece: float = 0.25
) -> JoinSpread:
    """Spread keys of these rates; `copied` says which sides may be copied, as `copied_sides` does.

    `piece` is the part of a channel's fair share that a piece of a key may have. Finer pieces balance better
    and cost more copies: a tuple of a key in n pieces has about sqrt(n), or n if only one side may be copied;
    on judged grids a left and a right tuple have n + 2 together.

    >>> keys, rates = np.array([5, 6, 7], np.uint64), np.array([8.0, 2.0, 1.0])
    >>> spread = spread_hot_keys(keys, rates, rates, Ring(4))
    >>> spread.sizes.tolist(), spread.columns.tolist()
    ([4, 1, 1], [2, 1, 1])
    """
    if not len(keys) == len(left) == len(right):
        raise BadRouting(
            f"{len(keys)} keys have {len(left)} left and {len(right)} right rates; give one of each for a key"
        )
    work = left * right
    if not (np.isfinite(work).all() and (left >= 0).all() and (right >= 0).all()):
        raise BadRouting("rates of keys are negative or not finite; give counts or shares, 0 or more")
    if not 0 < piece <= 1:
        raise BadRouting(f"a piece is {piece} of a channel's share; give more than 0 and at most 1")
    fair = max(float(work.sum()) / ring.channels, 1e-300)
    wanted = np.clip(np.ceil(work / (piece * fair)), 1, ring.channels).astype(np.int64)
    sizes, columns = np.ones(len(keys), np.int64), np.ones(len(keys), np.int64)
    for key in np.flatnonzero(wanted > 1):
        grid = shaped_grid(copied, int(wanted[key]), float(left[key]), float(right[key]))
        sizes[key], columns[key] = grid.channels, grid.columns
    targets = _placed(work, sizes, columns, copied, ring.channels)
    return JoinSpread(keys, sizes, columns, targets, ring, is_judged(copied))


def _placed(work: Costs, sizes: Numbers, columns: Numbers, copied: Copied, channels: int) -> Channels:
    """The channels of all cells: spread keys by falling pieces, then whole keys."""
    loads, pieces = np.zeros(channels), work / sizes
    begins = np.cumsum(sizes) - sizes
    targets = np.zeros(int(sizes.sum()), np.int32)
    spread = np.flatnonzero(sizes > 1)
    for key in spread[np.argsort(-pieces[spread], kind="stable")]:
        chosen = np.argsort(loads, kind="stable")[: sizes[key]]
        of_cells = np.full(sizes[key], pieces[key])
        if is_judged(copied):
            parts = cell_parts(copied, int(sizes[key]), int(columns[key]))
            of_cells = work[key] * np.array([pairs for *_, pairs in parts])
        cells = np.argsort(-of_cells, kind="stable")
        targets[begins[key] + cells] = chosen
        loads[chosen] += of_cells[cells]
    whole = np.flatnonzero(sizes == 1)
    targets[begins[whole]] = longest_first(work[whole], loads).channels
    return targets
