"""Where windows and panes lie on the time axis, in exact integer arithmetic.

A window of `size` sliding by `slide` is cut into panes of gcd(size, slide); every window is
`span` consecutive panes and starts `stride` panes after the one before (004 §2.4.1). Windows,
panes and their ends never need a float, so negative times and odd offsets are exact.
"""

from dataclasses import dataclass
from math import gcd

__all__ = ["WindowShape"]


@dataclass(frozen=True)
class WindowShape:
    """The geometry of one sliding window; all times are microseconds since 1970-01-01 UTC.

    >>> shape = WindowShape(size=6, slide=4, offset=0)
    >>> shape.pane, shape.span, shape.stride
    (2, 3, 2)
    >>> shape.pane_of(7), shape.first_window_with(3), shape.last_window_with(3)
    (3, 1, 1)
    """

    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        assert self.size > 0
        assert self.slide > 0

    @property
    def pane(self) -> int:
        """Length of a pane."""
        return gcd(self.size, self.slide)

    @property
    def span(self) -> int:
        """Panes in a window."""
        return self.size // self.pane

    @property
    def stride(self) -> int:
        """Panes from the start of a window to the start of the next."""
        return self.slide // self.pane

    @property
    def tumbling(self) -> bool:
        """Whether windows touch without overlapping."""
        return self.size == self.slide

    def pane_of(self, time: int) -> int:
        """The pane that holds an instant."""
        return (time - self.offset) // self.pane

    def pane_start(self, pane: int) -> int:
        """The instant at which a pane starts."""
        return pane * self.pane + self.offset

    def start_of(self, window: int) -> int:
        """The instant at which a window starts; it ends `size` later."""
        return window * self.slide + self.offset

    def first_window_with(self, pane: int) -> int:
        """The earliest window that holds a pane."""
        return (pane - self.span) // self.stride + 1

    def last_window_with(self, pane: int) -> int:
        """The latest window that holds a pane."""
        return pane // self.stride

    def first_open(self, frontier: int) -> int:
        """The earliest window that a frontier leaves open: those before it end at or below it."""
        return (self.pane_of(frontier) - self.span) // self.stride + 1
