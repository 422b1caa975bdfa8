"""The shape of a grid on which a Cartesian product is exact, outer joins included ([002] §III.D.2).

Each pair of tuples meets in one channel on any grid. But only the channel that has all pairs of a tuple knows
that it has no partner: if a side delivers tuples without a partner, each of its tuples goes to one channel
and each of the other side to all. The same holds for the left side of a semi join, which delivers a tuple
once however many partners it has. If both sides deliver theirs, or if the join counts the last tuples of the
whole other side, only a single channel is exact.

A hot key of a full outer equi-join has a *judged* grid: a full outer join is a left outer join, and the right
tuples without a partner. Left cells have a part of the left tuples each, and all right ones; right cells have
a part of the right tuples each, and all left ones. So a tuple is in one cell of its own side, which sees all
its possible partners and judges whether it is alone. Each pair meets once in the left cells and once in the
right cells; the more numerous kind delivers it. The columns of such a grid are its left cells, which come
first.
"""

from typing import Literal, assert_never

from penstock.routing.grid import Grid, grid_for

__all__ = [
    "Copied",
    "How",
    "cell_parts",
    "copied_on_grids",
    "copied_sides",
    "is_exact",
    "is_judged",
    "join_grid",
    "left_delivers",
    "row_copies",
    "shaped_grid",
]

How = Literal["inner", "left", "right", "full", "semi", "anti"]
Copied = Literal["both", "left", "right", "judged", "judged by pairs", "neither"]
"""Which sides may have copies; on judged grids both have some. If these are `by pairs`, cells that deliver no
pairs have to look at them nevertheless: time alone does not tell whether two tuples match."""

_FEWEST_JUDGED = 3
"""On two channels one would deliver all pairs."""
_LOOKED = 0.25
"""What it costs to look at a pair, of what it costs to deliver it: measured a fifth where half of them match;
few rows are compared with all candidates. Nearly all where next to none match."""


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


def copied_on_grids(how: How, *, last: bool, by_pairs: bool) -> Copied:
    """The same for the hot keys of an equi-join; `by_pairs`: only pairs tell whether a tuple is alone.

    >>> [copied_on_grids("full", last=last, by_pairs=False) for last in (False, True)]
    ['judged', 'neither']
    """
    if how == "full" and not last:
        return "judged by pairs" if by_pairs else "judged"
    return copied_sides(how, last=last)


def is_judged(copied: Copied) -> bool:
    """Whether grids have left and right cells."""
    return copied in {"judged", "judged by pairs"}


def is_exact(copied: Copied, size: int, columns: int) -> bool:
    """Whether a key of a join that may copy these sides is right on a grid of several channels.

    >>> is_exact("right", 4, 4), is_exact("judged", 4, 4)
    (True, False)
    """
    most = {"both": size, "left": 1, "right": size, "neither": 0}.get(copied, size - 1)
    return (size if copied == "right" else 1) <= columns <= most


def left_delivers(size: int, columns: int) -> bool:
    """Whether the left cells of a judged grid deliver its pairs, and not the right ones."""
    return 2 * columns >= size


def shaped_grid(copied: Copied, channels: int, left: float = 1.0, right: float = 1.0) -> Grid:
    """The grid of at most `channels` channels that copies only these sides; rates as in `grid_for`.

    Of a judged grid it gives the size and the number of left cells. All cells but one deliver pairs, and the
    side with more tuples has fewer copies; by pairs, three quarters of the cells do.

    >>> [shaped_grid(each, 8).columns for each in ("both", "left", "right", "judged", "judged by pairs")]
    [3, 1, 8, 7, 6]
    """
    match copied:
        case "both":
            return grid_for(channels, left, right)
        case "right":
            return Grid(channels, columns=channels)
        case "left":
            return Grid(channels, columns=1)
        case "neither":
            return Grid(1, columns=1)
        case "judged" | "judged by pairs":
            return _judged_grid(channels, left >= right, by_pairs=copied == "judged by pairs")
        case _:
            assert_never(copied)


def _judged_grid(channels: int, left_has_more: bool, *, by_pairs: bool) -> Grid:  # noqa: FBT001 -- a fact
    if channels < _FEWEST_JUDGED:
        return Grid(1, columns=1)
    more = channels - max(round(channels * _LOOKED), 1) if by_pairs else channels - 1
    return Grid(channels, columns=more if left_has_more else channels - more)


def cell_parts(copied: Copied, size: int, columns: int) -> list[tuple[float, float, float]]:
    """What each cell of a key's grid has: parts of its left tuples, of its right ones, and of its pairs.

    By pairs, those that a cell looks at count for what they cost.

    >>> cell_parts("both", 4, 2)[0], cell_parts("judged", 3, 2)
    ((0.5, 0.5, 0.25), [(0.5, 1.0, 0.5), (0.5, 1.0, 0.5), (1.0, 1.0, 0.0)])
    """
    if not is_judged(copied):
        heights = Grid(size, columns).heights
        return [(height / size, 1 / height, 1 / size) for height in heights for _ in range(height)]
    if size == 1:
        return [(1.0, 1.0, 1.0)]
    others = size - columns
    silent = _LOOKED if copied == "judged by pairs" else 0.0
    pairs = (1.0, silent) if left_delivers(size, columns) else (silent, 1.0)
    return [(1 / columns, 1.0, pairs[0] / columns)] * columns + [
        (1.0, 1 / others, pairs[1] / others)
    ] * others


def row_copies(copied: Copied, size: int, columns: int) -> tuple[float, float]:
    """To how many channels a left and a right tuple of a key's grid go, on average.

    >>> row_copies("both", 4, 2), row_copies("judged", 8, 7)
    ((2.0, 2.0), (2.0, 8.0))
    """
    if is_judged(copied) and size > 1:
        return 1.0 + size - columns, 1.0 + columns
    return size / columns, float(columns)


def join_grid(how: How, channels: int, left: float = 1.0, right: float = 1.0, *, last: bool) -> Grid:
    """The grid of a Cartesian product; it has one channel only where more would not be exact.

    An inner join takes `grid_for(channels, left, right)`. A left outer join sends a left tuple to one channel
    and a right tuple to all, a right outer join the other way round. A full outer join, and any join with the
    last n rows, has one channel.

    >>> [join_grid(how, 4, last=False).heights for how in ("inner", "left", "right", "full")]
    [(2, 2), (1, 1, 1, 1), (4,), (1,)]
    """
    return shaped_grid(copied_sides(how, last=last), channels, left, right)
