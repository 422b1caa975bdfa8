"""Routes panes and sub-panes by shares that were planned from rates; others round robin ([000] §4.2).

The guarantee: a pane within the plan reaches each channel in its planned share to within one slot's
worth of tuples, for any true size; a pane outside of the plan goes to one channel, by round robin. One
array lookup a tuple, two for a pane that is split.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.pane_shares import Shares
from penstock.routing.router import Channels

__all__ = ["Panes", "PlainPanes", "RatePanes", "plan_panes"]

Panes = NDArray[np.int64]
Sequence = NDArray[np.int64]


@dataclass(frozen=True)
class PlainPanes:
    """Whole panes in turn, blind to their size.

    >>> PlainPanes(3).route(np.array([-1, 0, 1, 2, 3]))
    array([2, 0, 1, 2, 0], dtype=int32)
    """

    channels: int

    def __post_init__(self) -> None:
        if self.channels < 1:
            raise BadRouting(f"{self.channels} channels for panes; give at least 1")

    def route(self, panes: Panes) -> Channels:
        """The channel of every pane id."""
        return (panes % self.channels).astype(np.int32)


@dataclass(frozen=True)
class RatePanes:
    """The planned panes from `first` on; these arrays are all that an engine needs to evaluate the route.

    `homes` has an entry for each planned pane: a channel if the pane is whole, else the bitwise complement of
    the place in `slots` where its `width` slots begin. The tuples of a split pane take its slots in turn, by
    `sequence`: any running number of tuples, such as a row's position in its partition.

    >>> router = plan_panes(10, np.array([[5.0, 0.0], [6.0, 2.0]]), width=4)
    >>> router.homes, router.slots
    (array([ 0, -1], dtype=int32), array([0, 0, 1, 0], dtype=int32))
    >>> router.route(np.array([10, 11, 11, 11, 11, 12]), np.arange(6))
    array([0, 0, 1, 0, 0, 0], dtype=int32)
    """

    channels: int
    first: int
    width: int
    homes: Channels
    slots: Channels

    def route(self, panes: Panes, sequence: Sequence) -> Channels:
        """The channel of every tuple, from the id of its pane and its running number."""
        channels = PlainPanes(self.channels).route(panes)
        planned = np.flatnonzero((panes >= self.first) & (panes < self.first + len(self.homes)))
        home = self.homes[panes[planned] - self.first]
        channels[planned] = home
        split = home < 0
        places = ~home[split] + (sequence[planned[split]] & (self.width - 1))
        channels[planned[split]] = self.slots[places]
        return channels


def plan_panes(first: int, shares: Shares, *, width: int = 256) -> RatePanes:
    """The router for consecutive panes with the given shares: a row for each pane, a column for each channel.

    `width` slots share out a split pane, so a share is rounded to 1 / `width` of the pane.
    """
    if shares.ndim != 2 or not shares.shape[1] or not np.isfinite(shares).all() or (shares < 0).any():
        raise BadRouting(
            f"shares of shape {shares.shape}; give a row for each pane with a finite share of at least 0 "
            "for each channel"
        )
    if width < 1 or width & (width - 1):
        raise BadRouting(f"width={width} slots for a split pane; give a power of two")
    panes, channels = shares.shape
    numbers = np.arange(first, first + panes, dtype=np.int64)
    empty = shares.sum(axis=1) == 0
    homes = np.where(empty, numbers % channels, shares.argmax(axis=1)).astype(np.int32)
    split = np.flatnonzero((shares > 0).sum(axis=1) > 1)
    homes[split] = ~(np.arange(len(split), dtype=np.int32) * width)
    blocks = [_slots(shares[pane], width) for pane in split]
    slots = np.concatenate(blocks) if blocks else np.empty(0, np.int32)
    return RatePanes(channels, first, width, homes, slots)


def _slots(shares: Shares, width: int) -> Channels:
    """Slots in proportion to the shares by largest remainder, each channel's spread evenly over the block."""
    exact = shares * (width / shares.sum())
    counts = np.floor(exact).astype(np.int64)
    missing = width - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
    channels = np.repeat(np.arange(len(shares), dtype=np.int32), counts)
    within = np.arange(width) - np.repeat(np.cumsum(counts) - counts, counts)
    # Half a step in, so that a channel with few slots does not crowd the start of every block.
    return channels[np.argsort((within + 0.5) / np.repeat(counts, counts), kind="stable")]
