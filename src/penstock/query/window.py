"""Time windows: [start, end), one every slide, aligned to 1970-01-01 00:00 UTC plus offset."""

from dataclasses import dataclass
from datetime import timedelta
from math import gcd

from penstock.errors import BadWindow
from penstock.expressions.durations import microseconds, signed_microseconds, words

__all__ = ["Window", "window_of"]


@dataclass(frozen=True, slots=True)
class Window:
    """A window in microseconds; each tuple lies in ceil(size / slide) or one fewer of its windows.

    >>> Window(3_600_000_000, 60_000_000, 0).pane
    60000000
    """

    size: int
    slide: int
    offset: int

    def __post_init__(self) -> None:
        if self.size <= 0:
            raise BadWindow(f"window of {words(self.size)}; the size has to be above zero")
        if self.slide <= 0:
            raise BadWindow(f"slide of {words(self.slide)}; the slide has to be above zero")
        if self.slide > self.size:
            raise BadWindow(
                f"slide of {words(self.slide)} is longer than the window of {words(self.size)}: tuples "
                "between windows would be lost; make the slide shorter, or leave tuples out with where()"
            )
        object.__setattr__(self, "offset", self.offset % self.slide)

    @property
    def pane(self) -> int:
        """The longest slice of time that no window's edge cuts."""
        return gcd(self.size, self.slide)

    def __str__(self) -> str:
        offset = f" offset {words(self.offset)}" if self.offset else ""
        return f"{words(self.size)} slide {words(self.slide)}{offset}"


def window_of(size: str | timedelta, slide: str | timedelta | None, offset: str | timedelta | None) -> Window:
    """The window that a user's durations describe; the slide defaults to the size."""
    length = microseconds(size)
    return Window(
        size=length,
        slide=length if slide is None else microseconds(slide),
        offset=0 if offset is None else signed_microseconds(offset),
    )
