"""Which windows each tuple is in and which it closes, exact for any size, slide, offset and negative times.

The marks of the split stage ([004] §2.2). Ids count from zero at the window that starts at
the shape's offset; the paper counts tuples and windows from one, so its tuple i is instant i - 1
here and its window j is window j - 1. Batches and panes are windows of another shape, so the same
marks serve all three.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.routing.window_shape import WindowShape

__all__ = ["Ids", "Instants", "Marks", "count_marks", "time_marks", "window_range"]

Instants = NDArray[np.int64]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Marks:
    """Each tuple is in the windows `first` to `last` and closes those from `first` to below `still_open`."""

    first: Ids
    last: Ids
    still_open: Ids

    @property
    def closers(self) -> NDArray[np.bool_]:
        """The tuples after which at least one window is complete."""
        return self.still_open > self.first


def window_range(shape: WindowShape, instants: Instants) -> tuple[Ids, Ids]:
    """The first and the last window that hold each instant; two integer divisions a tuple.

    >>> first, last = window_range(WindowShape(6, 4), np.array([-1, 0, 5]))
    >>> first.tolist(), last.tolist()
    ([-1, -1, 0], [-1, 0, 1])
    """
    ahead = instants - shape.offset
    return (ahead - shape.size) // shape.slide + 1, ahead // shape.slide


def time_marks(shape: WindowShape, times: Instants, frontier: int) -> Marks:
    """The marks of tuples in the order of their times, when no more will come below `frontier`.

    Of tuples with equal times only the last is a closer, and across a gap one tuple may close
    several windows.

    >>> marks = time_marks(WindowShape(3, 1), np.array([4, 4, 9]), frontier=10)
    >>> marks.closers.tolist(), marks.still_open.tolist()
    ([False, True, True], [2, 5, 8])
    """
    if len(times) and (bool((times[1:] < times[:-1]).any()) or frontier < times[-1]):
        raise BadRouting(
            f"the {len(times)} times are not ascending, or pass the frontier {frontier}; "
            "closers need ascending times up to the frontier: sort them, or use window_range for ids alone"
        )
    first, last = window_range(shape, times)
    # A window is complete once the next tuple, or the frontier after the last, lies beyond its end.
    following = np.append(first[1:], shape.first_open(frontier))[: len(first)]
    return Marks(first, last, np.clip(following, first, last + 1))


def count_marks(shape: WindowShape, start: int, count: int) -> Marks:
    """The marks of tuples numbered `start`, `start` + 1, ...; windows before number 0 do not exist.

    >>> count_marks(WindowShape(3, 2), start=0, count=6).closers.tolist()
    [False, False, True, False, True, False]
    """
    if start < 0 or count < 0:
        raise BadRouting(f"count windows over {count} tuples from number {start}; both must be at least 0")
    marks = time_marks(shape, np.arange(start, start + count), frontier=start + count)
    return Marks(*(np.maximum(ids, 0) for ids in (marks.first, marks.last, marks.still_open)))
