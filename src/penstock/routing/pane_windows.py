"""Windows of several shapes over one grid of panes, in exact integer arithmetic (004 §2.4.1).

Panes are as long as the greatest common divisor of all sizes, slides and distances of offsets, so every
window is a whole number of panes. Windows of a shape are numbered; their starts and ends never decrease with
the number, and no two of them end together. Methods take integers or arrays of them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

__all__ = ["CumulatingPanes", "PaneGrid", "PaneWindows", "SlidingPanes"]


@dataclass(frozen=True)
class PaneGrid:
    """Where panes lie on the time axis: pane n begins at n · `pane` + `offset`, in microseconds.

    >>> grid = PaneGrid(pane=10, offset=3)
    >>> grid.pane_of(2), grid.start_of(-1)
    (-1, -7)
    """

    pane: int
    offset: int = 0

    def pane_of(self, time: int) -> int:
        """The pane that holds an instant."""
        return (time - self.offset) // self.pane

    def start_of(self, pane: Any) -> Any:
        """The instant at which a pane starts."""
        return pane * self.pane + self.offset


class PaneWindows(ABC):
    """The windows of one shape as ranges of panes."""

    @abstractmethod
    def start(self, window: Any) -> Any:
        """The first pane of a window."""

    @abstractmethod
    def end(self, window: Any) -> Any:
        """The pane after the last one of a window."""

    @abstractmethod
    def first_with(self, pane: Any) -> Any:
        """The earliest window that ends after a pane; it holds the pane unless this lies between windows."""

    @abstractmethod
    def last_with(self, pane: Any) -> Any:
        """The latest window that starts at or before a pane."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """The panes of the longest window."""

    @property
    @abstractmethod
    def overlapping(self) -> bool:
        """Whether a pane may be in several windows."""

    @property
    def gaps(self) -> bool:
        """Whether some panes are in no window."""
        return False

    def late_below(self, open_from: int) -> int:
        """The pane below which a tuple is too late for every window, if those from `open_from` on are open.

        Panes between the last closed window and the first open one are in none, and no tuple is late there.
        """
        return int(min(self.start(open_from), self.end(open_from - 1)))


@dataclass(frozen=True)
class SlidingPanes(PaneWindows):
    """Windows of `span` panes, one every `stride` panes; window 0 starts at pane `phase`.

    >>> windows = SlidingPanes(span=3, stride=2)
    >>> windows.start(4), windows.end(4), windows.first_with(8), windows.last_with(8)
    (8, 11, 3, 4)
    >>> sampling = SlidingPanes(span=1, stride=3)
    >>> sampling.first_with(4), sampling.last_with(4), sampling.late_below(2)
    (2, 1, 4)
    """

    span: int
    stride: int
    phase: int = 0

    def __post_init__(self) -> None:
        assert self.span > 0
        assert self.stride > 0

    def start(self, window: Any) -> Any:
        """One stride after the other."""
        return window * self.stride + self.phase

    def end(self, window: Any) -> Any:
        """A span later."""
        return window * self.stride + self.phase + self.span

    def first_with(self, pane: Any) -> Any:
        """The earliest that ends after it."""
        return (pane - self.phase - self.span) // self.stride + 1

    def last_with(self, pane: Any) -> Any:
        """The latest that starts at or before it."""
        return (pane - self.phase) // self.stride

    @property
    def longest(self) -> int:
        """All have the same length."""
        return self.span

    @property
    def overlapping(self) -> bool:
        """Whether the next starts before one ends."""
        return self.span > self.stride

    @property
    def gaps(self) -> bool:
        """Whether the next starts after one ends."""
        return self.span < self.stride


@dataclass(frozen=True)
class CumulatingPanes(PaneWindows):
    """Windows that grow by `step` panes, `steps` times, and then start anew.

    >>> windows = CumulatingPanes(step=2, steps=3)
    >>> [(windows.start(each), windows.end(each)) for each in range(4)]
    [(0, 2), (0, 4), (0, 6), (6, 8)]
    >>> windows.first_with(3), windows.last_with(3)
    (1, 2)
    """

    step: int
    steps: int
    phase: int = 0

    def start(self, window: Any) -> Any:
        """Those of one round start together."""
        return window // self.steps * self.longest + self.phase

    def end(self, window: Any) -> Any:
        """One step after the other."""
        return (window + 1) * self.step + self.phase

    def first_with(self, pane: Any) -> Any:
        """The earliest that ends after it."""
        return (pane - self.phase) // self.step

    def last_with(self, pane: Any) -> Any:
        """The last of its round."""
        return ((pane - self.phase) // self.longest + 1) * self.steps - 1

    @property
    def longest(self) -> int:
        """The last of a round."""
        return self.step * self.steps

    @property
    def overlapping(self) -> bool:
        """All but those of a single step."""
        return self.steps > 1
