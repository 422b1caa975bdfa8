"""How few gates could do: the wasted-space lower bound of bin packing, and an exact solver for small cases.

The bound is L2 of Martello and Toth (Knapsack Problems, 1990, chapter 8): items above half a bin never share
one, and for every threshold the space beside them that smaller items cannot use is wasted ([000] §6.3).
"""

import numpy as np

from penstock.control.admission.best_fit import best_fit
from penstock.control.admission.cluster import Floats
from penstock.errors import BadAdmission

__all__ = ["fewest_bins", "lower_bound"]

_ROUNDING = 1e-9
# The search is exponential in the worst case; the exact solver is for checks, not for runs.
_MOST_ITEMS = 40


def lower_bound(sizes: Floats, capacity: float) -> int:
    """No packing needs fewer bins; at worst it is two thirds of the least number. O(n log n).

    An item above the capacity counts as a full bin, since a gate must take it whole.

    >>> lower_bound(np.array([6.0, 6.0, 6.0, 3.0, 3.0]), 10.0)
    3
    >>> lower_bound(np.array([0.0]), 10.0)
    0
    """
    share = np.sort(np.minimum(np.asarray(sizes, np.float64) / capacity, 1.0))[::-1]
    share = share[share > _ROUNDING]
    if not len(share):
        return 0
    sums = np.concatenate([[0.0], np.cumsum(share)])
    half = int(np.count_nonzero(share > 0.5 + _ROUNDING))
    # A threshold of every small item: those from it up to a half must go beside the large ones, or elsewhere.
    least = np.append(share[half:], 0.0)
    ends = np.append(np.arange(half, len(share)) + 1, len(share))
    alone = np.searchsorted(-share, -(1 - least + _ROUNDING), side="left")  # too large for any of them
    beside = (half - alone) - (sums[half] - sums[alone])
    rest = np.maximum(0.0, sums[ends] - sums[half] - beside)
    return int((half + np.ceil(rest - _ROUNDING)).max())


def fewest_bins(sizes: Floats, capacity: float) -> int:
    """The least number of bins, by branch and bound; for at most 40 items, exponential at worst.

    >>> fewest_bins(np.array([4.0, 4.0, 4.0, 6.0, 6.0, 6.0]), 10.0)
    3
    """
    items = sorted(
        (min(float(size), capacity) for size in sizes if size > capacity * _ROUNDING), reverse=True
    )
    if len(items) > _MOST_ITEMS:
        raise BadAdmission(f"{len(items)} streams for the exact solver; give at most {_MOST_ITEMS}")
    best = best_fit(items, [], capacity)[1]
    least = lower_bound(np.array(items), capacity) if items else 0
    rest = [sum(items[at:]) for at in range(len(items) + 1)]
    free: list[float] = []

    def search(at: int) -> None:
        nonlocal best
        if at == len(items):
            best = min(best, len(free))
            return
        beyond = rest[at] - sum(free)
        if best == least or len(free) + max(0, np.ceil(beyond / capacity - _ROUNDING)) >= best:
            return
        tried = set()
        for number, space in enumerate(free):
            # Bins with equal space are alike: one of them stands for all.
            if items[at] <= space + capacity * _ROUNDING and round(space, 12) not in tried:
                tried.add(round(space, 12))
                free[number] -= items[at]
                search(at + 1)
                free[number] = space
        free.append(capacity - items[at])
        search(at + 1)
        free.pop()

    search(0)
    return best
