"""The columns in which rows of both sides of a join travel together."""

from collections.abc import Sequence
from typing import Any

__all__ = ["Places", "shared_slots"]

Places = tuple[tuple[int, ...], tuple[int, ...]]
"""The slot of every column of the left and of the right side."""


def shared_slots(left: Sequence[Any], right: Sequence[Any]) -> Places:
    """Slots for columns of these types: one for two columns, of a side each, wherever the types are the same.

    >>> shared_slots(["long", "text"], ["long", "long", "text"])
    ((0, 1), (0, 2, 1))
    """
    free = list(range(len(left)))
    following = len(left)
    places = []
    for each in right:
        fitting = next((slot for slot in free if left[slot] == each), None)
        if fitting is None:
            fitting, following = following, following + 1
        else:
            free.remove(fitting)
        places.append(fitting)
    return tuple(range(len(left))), tuple(places)
