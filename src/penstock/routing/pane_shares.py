"""Cuts oversized panes into sub-panes so that channels stay level over any one round ([000] §4.2).

The guarantees: a pane of at most the recent mean plus one standard deviation stays whole; the tuples of a
larger pane that exceed the mean go, as sub-panes, first to the channels that received least in the
last round, to compensate them for small panes. No decision depends on later panes, but all of a pane's depend
on its size: the pane has to be counted, or predicted, before its first tuple is sent. Cut while it arrives,
a large pane is known as such only after a mean pane of its tuples, and the balance is several times worse.
Penstock therefore deals rows out in runs of a mean pane, which needs no count (`run_column`).

The paper sends the excess "to the next query node in the round-robin sequence". In runs of a mean pane that
would leave some channels a whole pane ahead within a round; tuple by tuple it gives the balance that the
paper reports, and that is what filling up the lowest channels does.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting

__all__ = ["PaneHistory", "Shares", "split_panes", "water_fill"]

Shares = NDArray[np.float64]
_ROUNDS = 4
# Rounds before the last one count for little: enough to break the beat of large and small panes that come in
# turn (which would always favour every second channel), too little to disturb the present round.
_EARLIER = 0.1


@dataclass(frozen=True)
class PaneHistory:
    """What the recent panes were, and what each gave to every channel; bounded by `recent` panes.

    `sizes` are the tuples of the last `recent` panes. `given` has a row of channels for each of the last
    `channels - 1` panes: with the pane to come they make one round; `earlier` is what came before, fading
    over `recent` panes. Until a whole round has been seen there is no estimate, and panes stay whole.

    >>> history = PaneHistory.start(2)
    >>> for size in (10, 10):
    ...     history = history.after(size, history.split(size))
    >>> history.split(30)  # the other channel had 10 in this round, so both now have 20
    array([20., 10.])
    """

    channels: int
    recent: int
    turn: int
    sizes: NDArray[np.float64]
    given: NDArray[np.float64]
    earlier: NDArray[np.float64]

    @classmethod
    def start(cls, channels: int, *, recent: int | None = None) -> "PaneHistory":
        """Nothing seen yet; `recent` panes make the estimate, by default four rounds."""
        kept = _ROUNDS * channels if recent is None else recent
        if channels < 1:
            raise BadRouting(f"{channels} channels for panes; give at least 1")
        if kept < channels:
            raise BadRouting(f"recent={kept} panes for {channels} channels; give at least one a channel")
        return cls(channels, kept, 0, np.empty(0), np.empty((0, channels)), np.zeros(channels))

    def split(self, size: float) -> Shares:
        """The tuples of the next pane for each channel; costs one pass over `given`.

        The pane's home is the channel with the least of the last round, and in a tie the next in turn: with
        panes of one size that is round robin.
        """
        load = self.given.sum(axis=0)
        turns = (np.arange(self.channels) + self.turn) % self.channels
        home = turns[np.argmin((load + _EARLIER * self.earlier)[turns])]
        shares = np.zeros(self.channels)
        shares[home] = size
        if len(self.sizes) < self.channels:
            return shares
        mean = float(self.sizes.mean())
        if size > mean + float(self.sizes.std()):
            shares[home] = mean
            shares += water_fill(load + shares, size - mean)
        return shares

    def after(self, size: float, shares: Shares) -> "PaneHistory":
        """The history once a pane of this size has been shared out."""
        rows = np.vstack([self.given, shares])
        leaving = max(0, len(rows) - (self.channels - 1))
        return replace(
            self,
            turn=(self.turn + 1) % self.channels,
            sizes=np.append(self.sizes, size)[-self.recent :],
            given=rows[leaving:],
            earlier=self.earlier * (1 - 1 / self.recent) + rows[:leaving].sum(axis=0),
        )


def split_panes(history: PaneHistory, sizes: Iterable[float]) -> tuple[Shares, PaneHistory]:
    """The shares of several panes, one row each, and the history after them."""
    rows = []
    for size in sizes:
        shares = history.split(size)
        history = history.after(size, shares)
        rows.append(shares)
    return np.array(rows).reshape(-1, history.channels), history


def water_fill(levels: NDArray[np.float64], amount: float) -> Shares:
    """Shares of `amount` that raise the lowest levels to one common height.

    >>> water_fill(np.array([5.0, 1.0, 3.0]), 4.0)
    array([0., 3., 1.])
    """
    order = np.argsort(levels, kind="stable")
    ascending = levels[order]
    counts = np.arange(1, len(levels) + 1)
    below = np.cumsum(ascending)
    # What it takes to lift the k lowest up to the next one; nothing is above the last.
    needed = counts[:-1] * ascending[1:] - below[:-1]
    lifted = int(np.searchsorted(needed, amount)) + 1
    height = (amount + below[lifted - 1]) / lifted
    shares = np.zeros(len(levels))
    shares[order[:lifted]] = height - ascending[:lifted]
    return shares
