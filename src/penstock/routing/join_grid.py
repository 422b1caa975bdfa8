"""The shape of a grid on which a Cartesian product is exact, outer joins included (002, section III.D.2).

Each pair of tuples meets in one channel on any grid. A tuple without a partner, though, is known as such only
where all of its pairs are: where a side's lone tuples are delivered, each of its tuples goes to one channel
and each of the other side to all. If both sides deliver theirs, or if a window counts the last tuples of the
whole other side, there is no such shape but a single channel.
"""

from typing import Literal, assert_never

from penstock.joins.join import Bound, How, Last
from penstock.routing.grid import Grid, grid_for

__all__ = ["Copied", "copied_sides", "join_grid", "shaped_grid"]

Copied = Literal["both", "left", "right", "neither"]


def copied_sides(how: How, bound: Bound) -> Copied:
    """Which sides of a join may have their tuples in more than one channel.

    >>> from penstock.joins import Last, Within
    >>> copied_sides("inner", Within(60)), copied_sides("left", Within(60)), copied_sides("inner", Last(3))
    ('both', 'right', 'neither')
    """
    if isinstance(bound, Last):
        return "neither"
    sides: dict[How, Copied] = {"inner": "both", "left": "right", "right": "left", "full": "neither"}
    return sides[how]


def shaped_grid(copied: Copied, channels: int, left: float = 1.0, right: float = 1.0) -> Grid:
    """The grid of at most so many channels that copies only what may be copied; rates as in `grid_for`."""
    match copied:
        case "both":
            return grid_for(channels, left, right)
        case "right":
            return Grid(channels, columns=channels)
        case "left":
            return Grid(channels, columns=1)
        case "neither":
            return Grid(1, columns=1)
        case _:
            assert_never(copied)


def join_grid(how: How, bound: Bound, channels: int, left: float = 1.0, right: float = 1.0) -> Grid:
    """The grid of a Cartesian product; it has one channel only where more would not be exact.

    An inner join takes `grid_for(channels, left, right)`. A left outer join sends a left tuple to one channel
    and a right tuple to all, a right outer join the other way round. A full outer join, and any join with the
    last n rows, has one channel.

    >>> from penstock.joins import Within
    >>> [join_grid(how, Within(60), 4).heights for how in ("inner", "left", "right", "full")]
    [(2, 2), (1, 1, 1, 1), (4,), (1,)]
    """
    return shaped_grid(copied_sides(how, bound), channels, left, right)
