"""First fit: each item goes into the lowest-numbered bin that has space for it, else into a new bin."""

from collections.abc import Sequence

from penstock.control.admission.cluster import Floats

__all__ = ["first_fit"]

_ROUNDING = 1e-9


def first_fit(
    sizes: Sequence[float] | Floats, free: Sequence[float] | Floats, new: float
) -> tuple[list[int], int]:
    """The bin of every item in the given order, and the number of bins then; new bins have `new` space.

    Sorted falling, it is first fit decreasing, which needs at most 11/9 of the least number of bins and 1.
    An item above `new` gets a bin of its own. A tree over the bins knows the most space below each of its
    nodes, so that an item costs O(log bins).

    >>> first_fit([6, 4, 3, 2], free=[3, 3], new=10)
    ([2, 2, 0, 1], 3)
    """
    count = len(free)
    leaves = 1 << max(0, count + len(sizes) - 1).bit_length()
    # Bins that no item has opened yet have the space of a new bin: the first of them is the next to open.
    most = [0.0] * leaves + [float(space) for space in free] + [new] * (leaves - count)
    for node in range(leaves - 1, 0, -1):
        most[node] = max(most[2 * node], most[2 * node + 1])
    chosen = []
    slack = new * _ROUNDING
    for size in sizes:
        # Above the space of a new bin: the first bin that nothing is in, which is the next to open.
        node = leaves + count if size - slack > new else _leftmost(most, leaves, size - slack)
        number = node - leaves
        count = max(count, number + 1)
        chosen.append(number)
        most[node] -= size
        while node > 1:
            node //= 2
            most[node] = max(most[2 * node], most[2 * node + 1])
    return chosen, count


def _leftmost(most: list[float], leaves: int, size: float) -> int:
    node = 1
    while node < leaves:
        node = 2 * node + (most[2 * node] < size)
    return node
