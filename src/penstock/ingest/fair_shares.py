"""A limit on rows shared over streams: none gets more while another that wants it has less.

Max-min fair: streams that want less than an equal share get all they want, the others share the rest.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["fair_shares"]


def fair_shares(wanted: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """How many rows each stream may have, `limit` in all or as many as are wanted.

    >>> fair_shares(np.array([1, 10, 100]), 31).tolist()
    [1, 10, 20]
    """
    if int(wanted.sum()) <= limit:
        return wanted.copy()
    ascending = np.sort(wanted)
    below = np.concatenate(([0], np.cumsum(ascending)[:-1]))
    # The level if the k smallest get all they want; the first that holds is the one.
    levels = (limit - below) // np.arange(len(wanted), 0, -1)
    level = int(levels[np.argmax(levels < ascending)])
    shares = np.minimum(wanted, level)
    # What division leaves goes to the longest backlogs, so that nobody starves under a very small limit.
    left = limit - int(shares.sum())
    longest = np.argsort(shares - wanted, kind="stable")[:left]
    shares[longest] += 1
    return shares
