"""Coarser nodes over panes, so that a long window closes from few rows.

Level l holds nodes of 8^l panes, built once when the last of their panes is complete. At most about
14·log8(length) nodes then cover a range of panes, instead of `length` panes. Finer rows are kept as
long as an open window may start among them, so nodes add at most a seventh per level. A late row adds its
share to every node that is there already (see `pane_table`).
"""

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["FANOUT", "Extent", "completed", "cover", "joined", "lengths", "without"]

FANOUT = 8


@dataclass(frozen=True, order=True)
class Extent:
    """Panes from `start` up to but not including `end`."""

    start: int
    end: int

    def __bool__(self) -> bool:
        return self.start < self.end


def lengths(span: int) -> list[int]:
    """Node lengths worth building for windows of `span` panes: at least two nodes fit in a window.

    >>> lengths(10), lengths(100), lengths(1000)
    ([], [8], [8, 64])
    """
    found, length = [], FANOUT
    while 2 * length <= span:
        found.append(length)
        length *= FANOUT
    return found


def completed(length: int, before: int, now: int) -> Extent:
    """The nodes of a length that became complete when the complete panes advanced from `before` to `now`."""
    return Extent(before // length * length, now // length * length)


def cover(wanted: Extent, coarser: list[tuple[int, list[Extent]]]) -> list[tuple[int, Extent]]:
    """Split a range into (node length, extent) pieces in time order; longer nodes are tried first.

    `coarser` gives, by node length, the extents for which nodes exist; length 1 covers the rest.

    >>> cover(Extent(3, 20), [(8, [Extent(0, 16)])])
    [(1, Extent(start=3, end=8)), (8, Extent(start=8, end=16)), (1, Extent(start=16, end=20))]
    """
    pieces, rest = [], [wanted]
    for length, extents in sorted(coarser, reverse=True):
        unfilled = []
        for gap in rest:
            at = gap.start
            for extent in joined(extents):
                start = max(_up(at, length), extent.start)
                end = min(gap.end, extent.end) // length * length
                if start < end:
                    pieces.append((length, Extent(start, end)))
                    unfilled.append(Extent(at, start))
                    at = end
            unfilled.append(Extent(at, gap.end))
        rest = [gap for gap in unfilled if gap]
    pieces.extend((1, gap) for gap in rest)
    return sorted(pieces, key=lambda piece: piece[1])


def _up(pane: int, length: int) -> int:
    return -(-pane // length) * length


def joined(extents: Iterable[Extent]) -> list[Extent]:
    """The same panes in as few extents as possible, ascending.

    >>> joined([Extent(4, 6), Extent(0, 4), Extent(5, 7), Extent(9, 9)])
    [Extent(start=0, end=7)]
    """
    found: list[Extent] = []
    for extent in sorted(each for each in extents if each):
        if found and extent.start <= found[-1].end:
            found[-1] = Extent(found[-1].start, max(found[-1].end, extent.end))
        else:
            found.append(extent)
    return found


def without(extents: Iterable[Extent], holes: Iterable[Extent], length: int) -> list[Extent]:
    """The extents of nodes of a length, less every node that touches a hole.

    >>> without([Extent(0, 32)], [Extent(9, 10)], 8)
    [Extent(start=0, end=8), Extent(start=16, end=32)]
    """
    found = joined(extents)
    for hole in joined(holes):
        start, end = hole.start // length * length, _up(hole.end, length)
        found = [
            piece
            for each in found
            for piece in (Extent(each.start, min(each.end, start)), Extent(max(each.start, end), each.end))
            if piece
        ]
    return found
