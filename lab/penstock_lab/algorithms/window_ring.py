"""Each pane is computed once, and each window on one channel from its own panes and its neighbour's.

The ring of [004] §2.4.2 and §2.4.3. Channels take sets of n neighbouring windows in turn, with the least n
with n·s_w ≥ w_w - s_w (in panes); a set's channel computes the last n·s_w panes of the set, and the
w_w - s_w panes before them come as results from the previous channel alone. (The paper's "s_w panes
from the split" is the case n = 1; sets advance by n·s_w panes.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing import Channels, WindowShape
from penstock.routing.window_ids import Ids, Instants

__all__ = ["WindowParts", "WindowRing"]


@dataclass(frozen=True)
class WindowParts:
    """The panes of one window: `local` on its own channel, `received` as results of the previous one."""

    channel: int
    received: range
    local: range


@dataclass(frozen=True)
class WindowRing:
    """Windows and panes of one shape on a ring of channels.

    >>> ring = WindowRing(WindowShape(6, 4), channels=3)
    >>> ring.parts(1)
    WindowParts(channel=1, received=range(2, 3), local=range(3, 5))
    >>> ring.route(np.array([4, 5, 6, 9])).tolist()
    [0, 0, 1, 1]
    """

    shape: WindowShape
    channels: int

    def __post_init__(self) -> None:
        if self.channels < 1:
            raise BadRouting(f"a ring of {self.channels} channels; give at least 1")

    @property
    def windows_in_set(self) -> int:
        """How many neighbouring windows one channel computes in its turn: n, at least 1."""
        shared = self.shape.span - self.shape.stride
        return max(1, -(-shared // self.shape.stride))

    @property
    def panes_in_set(self) -> int:
        """How many panes the split sends to one channel in its turn."""
        return self.windows_in_set * self.shape.stride

    def route(self, instants: Instants) -> Channels:
        """The channel that takes each tuple into its pane; one copy of a tuple for any overlap."""
        # Pane and set in one division: floor(floor(a / p) / n) is floor(a / (p·n)).
        start = self.shape.offset + self._lead * self.shape.pane
        return self._turn((instants - start) // (self.panes_in_set * self.shape.pane))

    def pane_channels(self, panes: Ids) -> Channels:
        """The channel that computes each pane."""
        return self._turn(self._set_of_pane(panes))

    def window_channels(self, windows: Ids) -> Channels:
        """The channel that computes each window."""
        return self._turn(windows // self.windows_in_set)

    def forwarded(self, panes: Ids) -> NDArray[np.bool_]:
        """The panes whose results the next channel on the ring needs as well."""
        return panes >= (self._set_of_pane(panes) + 1) * self.panes_in_set

    def parts(self, window: int) -> WindowParts:
        """Where the panes of one window come from."""
        turn = window // self.windows_in_set
        own = turn * self.panes_in_set + self._lead
        first, end = window * self.shape.stride, window * self.shape.stride + self.shape.span
        own = min(max(own, first), end)
        return WindowParts(turn % self.channels, range(first, own), range(own, end))

    @property
    def _lead(self) -> int:
        return self.shape.span - self.shape.stride

    def _set_of_pane(self, panes: Ids) -> Ids:
        return (panes - self._lead) // self.panes_in_set

    def _turn(self, sets: Ids) -> Channels:
        return (sets % self.channels).astype(np.int32)
