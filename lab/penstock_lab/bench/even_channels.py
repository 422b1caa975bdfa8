"""How even channels are, and what a run would save if they were as even as keys allow."""

from collections.abc import Sequence

import numpy as np

__all__ = ["busiest_over_mean", "ideal_saving", "part_saved"]


def busiest_over_mean(loads: Sequence[Sequence[float]]) -> float:
    """Of the loads of channels in some epochs: the busiest channel over the mean, all epochs together.

    >>> busiest_over_mean([[1.0, 3.0], [1.0, 3.0]])
    1.5
    """
    whole = np.array(loads, np.float64).sum(axis=0)
    return float(whole.max() / whole.mean())


def ideal_saving(rows: Sequence[Sequence[int]], hottest: Sequence[int], row_s: float) -> float:
    """Seconds that a run would save if its channels were as even as whole keys allow in every epoch.

    `rows` has the rows of each channel in each epoch, each of which takes `row_s` seconds, and `hottest` the
    rows of the most frequent key: a channel that has only this one may still be the busiest. All channels run
    at the same time, so an epoch takes what its busiest channel does.

    >>> round(ideal_saving([[50, 30, 10]], [20], 0.01), 6)
    0.2
    >>> round(ideal_saving([[50, 30, 10]], [40], 0.01), 6)
    0.1
    """
    saved = 0.0
    for channels, key in zip(rows, hottest, strict=True):
        saved += max(channels) - max(sum(channels) / len(channels), key)
    return saved * row_s


def part_saved(off_s: float, on_s: float, ideal_s: float) -> float:
    """What a run saved, as a part of what it could have saved.

    >>> part_saved(10.0, 8.5, 2.0)
    0.75
    """
    return (off_s - on_s) / ideal_s
