"""Which rows of many streams are held without a hole, and which gate to ask for which of them.

Gates hold ranges [low, high) of the sequences of a stream. Ranges may overlap, since a client resends
elsewhere what was not acknowledged, and they may have holes while a gate is away. From a given sequence on,
`reached` goes as far as there is no hole, and `pieces` takes every sequence of that run from exactly one
range. Both are one sort, without a loop over streams.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pieces", "Ranges", "pieces", "reached"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Ranges:
    """Ranges [low, high) of streams that are known by their number."""

    stream: Integers
    low: Integers
    high: Integers


@dataclass(frozen=True)
class Pieces:
    """Sequences [first, last) to take from a range, given by its position; ascending for each stream."""

    range: Integers
    stream: Integers
    first: Integers
    last: Integers


def reached(held: Ranges, start: Integers) -> Integers:
    """How far each stream can be read from its start without a hole.

    >>> held = Ranges(np.array([0, 0, 1]), np.array([0, 5, 3]), np.array([5, 9, 7]))
    >>> reached(held, np.array([2, 0])).tolist()
    [9, 0]
    """
    run = _run(held, start)
    end = start.copy()
    np.maximum.at(end, run.stream, held.high[run.range])
    return end


def pieces(held: Ranges, start: Integers, end: Integers) -> Pieces:
    """The sequences from start to end of every stream, each from one range; less where there is a hole."""
    run = _run(held, start)
    last = np.minimum(held.high[run.range], end[run.stream])
    some = run.first < last
    return Pieces(run.range[some], run.stream[some], run.first[some], last[some])


def _run(held: Ranges, start: Integers) -> Pieces:
    """What each range adds to the run from the start, in the order of streams and sequences."""
    useful = np.flatnonzero(held.high > start[held.stream])
    # Of ranges that begin together the longest first, so that a stream is in as few pieces as can be.
    order = useful[np.lexsort((-held.high[useful], held.low[useful], held.stream[useful]))]
    stream, low, high = held.stream[order], held.low[order], held.high[order]
    covered = np.maximum(start[stream], _highest_before(stream, high))
    whole = ~_after_a_hole(stream, low > covered)
    return Pieces(
        order[whole], stream[whole], np.maximum(low, covered)[whole], np.maximum(high, covered)[whole]
    )


def _highest_before(stream: Integers, high: Integers) -> Integers:
    """The greatest high of the earlier ranges of the same stream; the smallest integer for the first."""
    if not len(stream):
        return high
    rank = np.empty_like(high)
    rank[np.argsort(high, kind="stable")] = np.arange(len(high))
    ascending = np.sort(high)
    # Ranks are below the number of ranges, so that a later stream stands above all earlier ones.
    running = np.maximum.accumulate(stream * len(high) + rank) % len(high)
    before = np.full_like(high, np.iinfo(np.int64).min)
    same = stream[1:] == stream[:-1]
    before[1:][same] = ascending[running[:-1][same]]
    return before


def _after_a_hole(stream: Integers, hole: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a hole lies before a range or at an earlier one of the same stream."""
    holes = np.cumsum(hole)
    first = np.searchsorted(stream, stream, side="left")
    return holes - holes[first] + hole[first] > 0
