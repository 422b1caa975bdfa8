"""The least makespan by trying every placement: what schedulers are measured against."""

import numpy as np


def least_makespan(costs, channels):
    """Exact for a handful of items: grows as channels ** items."""
    loads = np.zeros((1, channels))
    for cost in costs:
        loads = (loads[:, None, :] + cost * np.eye(channels)).reshape(-1, channels)
    return loads.max(axis=1).min()
