"""The windows that a user can ask for: sliding ones and cumulating ones, in microseconds.

Windows are [start, end), aligned to 1970-01-01 00:00 UTC plus offset.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from penstock.errors import BadWindow
from penstock.expressions.durations import microseconds, signed_microseconds, words
from penstock.operators.operator import Duration
from penstock.routing.pane_windows import CumulatingPanes, PaneGrid, PaneWindows, SlidingPanes

__all__ = [
    "Cumulation",
    "Window",
    "WindowValue",
    "coinciding",
    "cumulate",
    "paned",
    "window",
    "window_of",
]


@dataclass(frozen=True, slots=True)
class Window:
    """A window of `size`, one every `slide`; each tuple lies in ceil(size / slide) or one fewer of them.

    If the slide is longer than the size, tuples between windows are in none.

    >>> Window(3_600_000_000, 60_000_000, 0).pane
    60000000
    """

    size: int
    slide: int
    offset: int

    def __post_init__(self) -> None:
        _above_zero("window", "size", self.size)
        _above_zero("slide", "slide", self.slide)
        object.__setattr__(self, "offset", self.offset % self.slide)

    @property
    def pane(self) -> int:
        """The longest slice of time that no window's edge cuts."""
        return gcd(self.size, self.slide)

    @property
    def period(self) -> int:
        """The time between starts of windows."""
        return self.slide

    @property
    def lengths(self) -> range:
        """The lengths of its windows."""
        return range(self.size, self.size + 1)

    def over(self, pane: int, phase: int) -> PaneWindows:
        """The same windows on a grid of panes, on which the first window starts `phase` panes from zero."""
        return SlidingPanes(self.size // pane, self.slide // pane, phase)

    def meaning(self) -> list[object]:
        """All that tells it from other windows."""
        return [self.size, self.slide, self.offset]

    @property
    def verb(self) -> str:
        """The verb that puts it over a relation."""
        return "window"

    def __str__(self) -> str:
        return f"{words(self.size)} slide {words(self.slide)}{_offset(self.offset)}"


@dataclass(frozen=True, slots=True)
class Cumulation:
    """Windows that start together and grow by `step` until they are `size` long; then the next ones start.

    >>> Cumulation(3_600_000_000, 900_000_000, 0).steps
    4
    """

    size: int
    step: int
    offset: int

    def __post_init__(self) -> None:
        _above_zero("cumulating windows", "size", self.size)
        _above_zero("step", "step", self.step)
        if self.size % self.step:
            raise BadWindow(
                f"cumulating windows of {words(self.size)} by steps of {words(self.step)}: the size has to "
                "be a whole number of steps, since the last window of a round is as long as the size"
            )
        object.__setattr__(self, "offset", self.offset % self.size)

    @property
    def steps(self) -> int:
        """The number of windows that start together."""
        return self.size // self.step

    @property
    def pane(self) -> int:
        """The longest slice of time that no window's edge cuts."""
        return self.step

    @property
    def period(self) -> int:
        """The time between starts of windows."""
        return self.size

    @property
    def lengths(self) -> range:
        """The lengths of its windows."""
        return range(self.step, self.size + 1, self.step)

    def over(self, pane: int, phase: int) -> PaneWindows:
        """The same windows on a grid of panes, on which the first window starts `phase` panes from zero."""
        return CumulatingPanes(self.step // pane, self.steps, phase)

    def meaning(self) -> list[object]:
        """All that tells it from other windows."""
        return ["cumulate", self.size, self.step, self.offset]

    @property
    def verb(self) -> str:
        """The verb that puts it over a relation."""
        return "cumulate"

    def __str__(self) -> str:
        return f"{words(self.size)} step {words(self.step)}{_offset(self.offset)}"


WindowValue = Window | Cumulation


def window(size: Duration, slide: Duration | None = None, offset: Duration | None = None) -> Window:
    """A window as a value: of this size, one every slide; without a slide they do not overlap.

    >>> str(window("10 minutes", slide="1 minute"))
    '10 minutes slide 1 minute'
    """
    return window_of(size, slide, offset)


def window_of(size: Duration | int, slide: Duration | int | None, offset: Duration | None) -> Window:
    """The window that a user's durations describe; the slide defaults to the size."""
    if isinstance(size, int) or isinstance(slide, int):
        raise BadWindow(
            f"window({size!r}, {slide!r}); give durations such as '1 minute', or rows=True for counts"
        )
    length = microseconds(size)
    return Window(
        size=length,
        slide=length if slide is None else microseconds(slide),
        offset=0 if offset is None else signed_microseconds(offset),
    )


def cumulate(size: Duration, step: Duration, offset: Duration | None = None) -> Cumulation:
    """Cumulating windows as a value: they start together and grow by the step until they have this size.

    >>> str(cumulate("1 day", "1 hour"))
    '1 day step 1 hour'
    """
    return Cumulation(
        size=microseconds(size),
        step=microseconds(step),
        offset=0 if offset is None else signed_microseconds(offset),
    )


def coinciding(one: WindowValue, other: WindowValue) -> bool:
    """Whether some window of one is a window of the other, too.

    >>> coinciding(Window(10, 1, 0), Window(10, 4, 1)), coinciding(Window(10, 10, 0), Window(10, 10, 5))
    (True, False)
    """
    if (one.offset - other.offset) % gcd(one.period, other.period):
        return False
    return not set(one.lengths).isdisjoint(other.lengths)


def paned(windows: Sequence[WindowValue]) -> tuple[PaneGrid, tuple[PaneWindows, ...]]:
    """A grid of panes that no edge of any window cuts, and the windows on it.

    >>> grid, (one, other) = paned([Window(60, 60, 0), Window(40, 20, 10)])
    >>> grid, one.span, other
    (PaneGrid(pane=10, offset=0), 6, SlidingPanes(span=4, stride=2, phase=1))
    """
    origin = windows[0].offset
    pane = gcd(*(each.pane for each in windows), *(each.offset - origin for each in windows))
    return PaneGrid(pane, origin), tuple(each.over(pane, (each.offset - origin) // pane) for each in windows)


def _above_zero(what: str, name: str, length: int) -> None:
    if length <= 0:
        raise BadWindow(f"{what} of {words(length)}; the {name} has to be above zero")


def _offset(offset: int) -> str:
    return f" offset {words(offset)}" if offset else ""
