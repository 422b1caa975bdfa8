"""Every tuple of a window reaches the channel that computes it: partitions go round robin ([004] §2.2).

A partition is a window or a batch of windows; partition p is computed on channel p mod N. The paper
sends one copy to each partition. One delivery to each channel is enough, because a channel
knows from the tuple's marks which of its partitions the tuple is in; that costs at most N copies.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.router import Channels
from penstock.routing.window_ids import Ids, Marks

__all__ = ["PartitionCopies", "copies", "deliveries", "partition_channel"]


@dataclass(frozen=True)
class PartitionCopies:
    """What the split sends: which tuple, for which partition, to which channel; tuples in their order."""

    tuples: NDArray[np.int64]
    partitions: Ids
    channels: Channels


def partition_channel(partitions: Ids, channels: int) -> Channels:
    """The channel that computes each partition."""
    if channels < 1:
        raise BadRouting(f"a split over {channels} channels; give at least 1")
    return (partitions % channels).astype(np.int32)


def copies(marks: Marks, channels: int) -> PartitionCopies:
    """One copy of each tuple for each partition that it is in.

    >>> from penstock.routing import WindowShape
    >>> from penstock.routing.window_ids import count_marks
    >>> sent = copies(count_marks(WindowShape(2, 1), start=5, count=2), channels=3)
    >>> list(zip(sent.tuples.tolist(), sent.partitions.tolist(), sent.channels.tolist()))
    [(0, 4, 1), (0, 5, 2), (1, 5, 2), (1, 6, 0)]
    """
    return _expand(marks.first, marks.last - marks.first + 1, channels)


def deliveries(marks: Marks, channels: int) -> PartitionCopies:
    """One copy of each tuple for each channel that needs it, named by the first partition there.

    >>> from penstock.routing import WindowShape
    >>> from penstock.routing.window_ids import count_marks
    >>> marks = count_marks(WindowShape(100, 1), start=500, count=1)
    >>> len(copies(marks, 4).tuples), len(deliveries(marks, 4).tuples)
    (100, 4)
    """
    # Neighbouring partitions lie on different channels, so the first N of a tuple visit each once.
    return _expand(marks.first, np.minimum(marks.last - marks.first + 1, channels), channels)


def _expand(first: Ids, counts: NDArray[np.int64], channels: int) -> PartitionCopies:
    ends = np.cumsum(counts)
    tuples = np.repeat(np.arange(len(first)), counts)
    partitions = np.arange(len(tuples)) + np.repeat(first - (ends - counts), counts)
    return PartitionCopies(tuples, partitions, partition_channel(partitions, channels))
