"""A router on the way from one to another: no more than a given share of the state moves at a time.

Every key is where one of the two routers has it, so routing is exact at each step, and a finite number of
steps reaches the other router. A step switches whole cells of the ring and single keys of the
tables; one that weighs more than the share alone is a step of its own. Keys go before cells and the most
frequent first: what evens the load most is where it belongs soonest.
"""

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.cell_ring import CellRing
from penstock.routing.frequencies import Frequencies
from penstock.routing.hash_pair import HashPair
from penstock.routing.resources import Growth
from penstock.routing.router import Costs, Hashes

__all__ = ["cost_shares", "step_toward"]


def step_toward(  # noqa: PLR0913 -- two routers, what weighs how much, and the limit
    before: HashPair, after: HashPair, known: Frequencies, *, growth: Growth, share: float, domain: int
) -> HashPair:
    """The next router towards `after` that moves about `share` of the state; `after` itself at the end.

    `growth` is how state grows with a key's frequency. There are `domain` keys; unknown ones weigh the same.

    >>> one, four = HashPair(*_NO_KEYS, _plain([0, 0, 0, 0])), HashPair(*_NO_KEYS, _plain([0, 1, 2, 3]))
    >>> nothing = Frequencies(np.zeros(0, np.uint64), np.zeros(0))
    >>> step_toward(one, four, nothing, growth=Growth.LINEAR, share=0.5, domain=9).ring.cells.tolist()
    [0, 1, 2, 0]
    """
    if not share > 0:
        raise BadRouting(f"a step may move {share} of the state; give more than 0")
    old, new = _same_size(before.ring.cells, after.ring.cells)
    keys = np.union1d(before.keys, after.keys)
    homes, goals = before.route(keys), after.route(keys)
    key_weights, cell_weights = cost_shares(keys, known, growth, len(old), domain)
    hot_keys, hot_cells = cost_shares(keys, known, Growth.LINEAR, len(old), domain)
    moving_keys = _hottest_first(np.flatnonzero(homes != goals), hot_keys)
    moving_cells = _hottest_first(np.flatnonzero(old != new), hot_cells)
    weights = np.concatenate([key_weights[moving_keys], cell_weights[moving_cells]])
    if weights.sum() <= share * (1 + 1e-9):
        return after
    count = max(1, int(np.searchsorted(np.cumsum(weights), share * (1 + 1e-9), side="right")))
    if count >= len(weights):
        return after
    switched = moving_cells[: max(0, count - len(moving_keys))]
    cells = old.copy()
    cells[switched] = new[switched]
    targets = homes.copy()
    targets[moving_keys[:count]] = goals[moving_keys[:count]]
    channels = max(before.channels, after.channels)
    return HashPair(keys, targets.astype(np.int32), CellRing.over(after.ring, cells, channels))


def _same_size(old: NDArray[np.int32], new: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The owners of the same number of cells: the coarser ring is cut like the finer one."""
    size = max(len(old), len(new))
    return np.repeat(old, size // len(old)), np.repeat(new, size // len(new))


def _hottest_first(places: NDArray[np.intp], shares: Costs) -> NDArray[np.intp]:
    ordered: NDArray[np.intp] = places[np.argsort(-shares[places], kind="stable")]
    return ordered


def cost_shares(
    keys: Hashes, known: Frequencies, growth: Growth, cells: int, domain: int
) -> tuple[Costs, Costs]:
    """The share of a whole resource in each of these keys, and in each cell of the ring without them.

    There are `domain` keys; those that are not known cost the same.
    """
    rest = max(domain - len(known), 1)
    missing = max(1.0 - float(known.shares.sum()), 0.0)
    single = float(growth.costs(np.array([missing / rest]))[0])
    costs = growth.costs(known.shares)
    light = ~np.isin(known.hashes, keys)
    at = (known.hashes[light] >> np.uint64(65 - cells.bit_length())).astype(np.int64) if cells > 1 else 0
    cell = np.full(cells, rest * single / cells)
    np.add.at(cell, at, costs[light])
    shares = known.of(keys)
    key = np.where(shares > 0, growth.costs(shares), single)
    total = float(cell.sum() + key.sum())
    return key / total, cell / total


_NO_KEYS = (np.zeros(0, np.uint64), np.zeros(0, np.int32))


def _plain(owners: list[int]) -> CellRing:
    return CellRing(max(owners) + 1, buckets=len(owners), owners=np.array(owners, np.int32))
