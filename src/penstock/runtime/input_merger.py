"""The input merger: how far a port with several feeds has come (002, section III.E).

Tuples are never sorted into one line: each carries its event time, operators go by event order, and the
frontier says what is complete. So merging transparently is waiting for the slowest feed, and nothing else.
"""

from collections.abc import Sequence
from typing import Literal

__all__ = ["MERGINGS", "Merging", "merged"]

Merging = Literal["transparent", "best effort"]
MERGINGS: tuple[Merging, ...] = ("transparent", "best effort")


def merged(frontiers: Sequence[int | None], merging: Merging) -> int | None:
    """The frontier of a port, None while nothing is promised.

    Transparent: what every feed has promised, so the result is that of one machine. Best effort: what one
    of them has, so results come as soon as the fastest feed lets them, and tuples of slower ones may be
    late.

    >>> merged([30, 10], "transparent"), merged([30, None], "transparent"), merged([30, None], "best effort")
    (10, None, 30)
    """
    known = [each for each in frontiers if each is not None]
    if merging == "best effort":
        return max(known, default=None)
    return min(known) if len(known) == len(frontiers) else None
