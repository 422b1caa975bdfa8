"""The shape of a grid on which a Cartesian product is exact, outer joins included ([002] §III.D.2).

Each pair of tuples meets in one channel on any grid. But only the channel that has all pairs of a tuple knows
that it has no partner: if a side delivers tuples without a partner, each of its tuples goes to one channel
and each of the other side to all. The same holds for the left side of a semi join, which delivers a tuple
once however many partners it has. If both sides deliver theirs, or if the join counts the last tuples of the
whole other side, only a single channel is exact.
"""

from typing import Literal, assert_never

from penstock.routing.grid import Grid, grid_for

__all__ = ["Copied", "How", "copied_sides", "join_grid", "shaped_grid"]

How = Literal["inner", "left", "right", "full", "semi", "anti"]
Copied = Literal["both", "left", "right", "neither"]


def copied_sides(how: How, *, last: bool) -> Copied:
    """Which sides of a join may have their tuples in more than one channel; `last`: it counts the last rows.

    >>> copied_sides("inner", last=False), copied_sides("left", last=False), copied_sides("inner", last=True)
    ('both', 'right', 'neither')
    """
    if last:
        return "neither"
    # A left row of a semi join has to be known to have matched in one place, or it would be delivered twice.
    sides: dict[How, Copied] = {"inner": "both", "right": "left", "full": "neither"}
    return sides.get(how, "right")


def shaped_grid(copied: Copied, channels: int, left: float = 1.0, right: float = 1.0) -> Grid:
    """The grid of at most `channels` channels that copies only these sides; rates as in `grid_for`."""
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


def join_grid(how: How, channels: int, left: float = 1.0, right: float = 1.0, *, last: bool) -> Grid:
    """The grid of a Cartesian product; it has one channel only where more would not be exact.

    An inner join takes `grid_for(channels, left, right)`. A left outer join sends a left tuple to one channel
    and a right tuple to all, a right outer join the other way round. A full outer join, and any join with the
    last n rows, has one channel.

    >>> [join_grid(how, 4, last=False).heights for how in ("inner", "left", "right", "full")]
    [(2, 2), (1, 1, 1, 1), (4,), (1,)]
    """
    return shaped_grid(copied_sides(how, last=last), channels, left, right)
