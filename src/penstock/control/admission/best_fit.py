"""Best fit: each item goes into the fullest bin that still has space for it, else into a new bin."""

from bisect import bisect_left, insort
from collections.abc import Sequence

from penstock.control.admission.cluster import Floats

__all__ = ["best_fit"]

_ROUNDING = 1e-9


def best_fit(
    sizes: Sequence[float] | Floats, free: Sequence[float] | Floats, new: float
) -> tuple[list[int], int]:
    """The bin of every item in the given order, and the number of bins then; new bins have `new` space.

    Sorted falling, it is best fit decreasing, which needs at most 11/9 of the least number of bins and 1.
    Equally full bins go by number. An item above `new` gets a bin of its own. O((items + bins) log bins)
    comparisons; the sorted list also shifts up to `bins` pointers an item.

    >>> best_fit([6, 4, 3, 2], free=[3, 3], new=10)
    ([2, 2, 0, 1], 3)
    """
    order = sorted((float(space), number) for number, space in enumerate(free))
    count = len(order)
    chosen = []
    slack = new * _ROUNDING
    for size in sizes:
        at = bisect_left(order, (size - slack, -1))
        if at < len(order):
            space, number = order.pop(at)
        else:
            space, number = new, count
            count += 1
        chosen.append(number)
        insort(order, (space - size, number))
    return chosen, count
