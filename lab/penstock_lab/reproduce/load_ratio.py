"""The load-balancing ratio: standard deviation over mean of the channels' loads ([000] §6.4.1)."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["load_ratio", "rolling_ratio"]


def load_ratio(loads: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
    """Standard deviation divided by mean, over the last axis; 0 where no channel has any load.

    >>> load_ratio(np.array([[1, 3], [2, 2], [0, 0]]))
    array([0.5, 0. , 0. ])
    """
    mean = loads.mean(axis=-1)
    ratio = np.zeros(mean.shape)
    np.divide(loads.std(axis=-1), mean, out=ratio, where=mean > 0)
    return ratio


def rolling_ratio(given: NDArray[np.float64], span: int) -> NDArray[np.float64]:
    """The ratio of the loads of every `span` rows that follow each other; a row is one pane, by channel.

    >>> rolling_ratio(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]]), 2)
    array([0., 1.])
    """
    total = np.vstack([np.zeros(given.shape[1]), given]).cumsum(axis=0)
    return load_ratio(total[span:] - total[:-span])
