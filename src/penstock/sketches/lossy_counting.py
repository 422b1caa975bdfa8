"""Lossy counting: all items above a frequency, in space that is logarithmic in the length of the stream.

Every item that makes up at least a share `support` of the stream is reported, none below `support` -
`epsilon`, and counts are too low by at most `epsilon` of the stream (003, section 4.1.2).

The stream is cut into windows of 1/epsilon items. An item that is not in memory enters window i with
count 1 and error i - 1; when window i closes, items with count + error <= i leave. Many windows are
closed at once here, with the same result: the slack of an item, count + error - i, starts at 0, grows by
its occurrences in a window less one, and the item leaves when the slack is back at 0. So each item walks
on its own, and its slack after the last window is its highest gain from any of its windows on.
"""

from dataclasses import dataclass
from math import ceil
from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.sketches.counted import Counted, by_count
from penstock.sketches.wire import pack, unpack

__all__ = ["LossyCounting", "Memory"]

Hashes = NDArray[np.uint64]
Ints = NDArray[np.int64]

_LEAST_EPSILON = 1e-7  # a window of 80 MB
_BLOCK = 32_768  # items that are worked on at once, unless one window has more


@dataclass(frozen=True)
class Memory:
    """What is kept after `closed` windows: hashed items in rising order with their counts and errors."""

    closed: int
    hashes: Hashes
    counts: Ints
    errors: Ints


class LossyCounting:
    """Counts of hashed items, too low by at most `epsilon` times the items seen.

    Memory is O(1/epsilon * log(epsilon * items)), of which the window that is not full yet takes up to
    8/epsilon bytes.

    >>> counter = LossyCounting(epsilon=0.25)
    >>> counter.update(np.array([1, 1, 2, 3, 1, 1, 4, 5, 1], np.uint64))
    >>> found = counter.frequent(support=0.5)
    >>> found.hashes.tolist(), found.counts.tolist(), found.total
    ([1], [5.0], 9.0)
    """

    def __init__(self, epsilon: float) -> None:
        if not _LEAST_EPSILON <= epsilon < 1:
            raise BadRouting(
                f"epsilon is {epsilon}; give {_LEAST_EPSILON} or more and less than 1, "
                "a tenth of the frequency that matters"
            )
        self.epsilon = epsilon
        self.window = ceil(1 / epsilon)
        none = np.zeros(0, np.int64)
        self.memory = Memory(0, none.view(np.uint64), none, none)
        self.open: list[Hashes] = [none.view(np.uint64)]  # the window that is not full yet

    @property
    def total(self) -> int:
        """How many items were seen."""
        return self.memory.closed * self.window + sum(map(len, self.open))

    def update(self, hashes: Hashes) -> None:
        """Take in items, in their order."""
        missing = self.window - sum(map(len, self.open))
        if len(hashes) < missing:
            self.open.append(hashes.copy())
            return
        first = np.concatenate([*self.open, hashes[:missing]])
        self.memory = _close(self.memory, first[None, :])
        end = missing + (len(hashes) - missing) // self.window * self.window
        windows = hashes[missing:end].reshape(-1, self.window)
        step = max(1, _BLOCK // self.window)
        for number in range(0, len(windows), step):
            self.memory = _close(self.memory, windows[number : number + step])
        self.open = [hashes[end:].copy()]

    def items(self) -> Counted:
        """Everything in memory, with the window that is not full yet."""
        memory = self.memory
        fresh, times = np.unique(np.concatenate(self.open), return_counts=True)
        both = np.concatenate([memory.hashes, fresh])
        hashes, first, place = np.unique(both, return_index=True, return_inverse=True)
        counts = np.bincount(place, np.concatenate([memory.counts, times]), minlength=len(hashes))
        errors = np.concatenate([memory.errors, np.full(len(fresh), memory.closed)])[first]
        return by_count(hashes, counts, errors, self.total)

    def frequent(self, support: float) -> Counted:
        """All items with a share of at least `support`, and some of at least `support` - `epsilon`."""
        if not self.epsilon <= support <= 1:
            raise BadRouting(f"support is {support}; give {self.epsilon} (epsilon) or more, and at most 1")
        return self.items().at_least((support - self.epsilon) * self.total)

    def merge(self, other: "LossyCounting") -> None:
        """Take in all that another counter of the same `epsilon` has seen; the bounds hold for the union."""
        if other.epsilon != self.epsilon:
            raise BadRouting(f"counters have epsilon {self.epsilon} and {other.epsilon}; make them alike")
        self.memory = _union(self.memory, other.memory)
        self.update(np.concatenate(other.open))

    def to_bytes(self) -> bytes:
        """A form to send or to store."""
        memory = self.memory
        numbers = {"epsilon": self.epsilon, "closed": memory.closed}
        kept = [memory.hashes, memory.counts, memory.errors]
        return pack("lossy-counting", numbers, [*kept, np.concatenate(self.open)])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The counter that `to_bytes` wrote."""
        numbers, (hashes, counts, errors, rest) = unpack("lossy-counting", data)
        counter = cls(numbers["epsilon"])
        counter.memory, counter.open = Memory(numbers["closed"], hashes, counts, errors), [rest]
        return counter


def _union(one: Memory, other: Memory) -> Memory:
    """The memory of both streams together."""
    hashes, place = np.unique(np.concatenate([one.hashes, other.hashes]), return_inverse=True)
    counts, errors = np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
    for each, mine in ((one, place[: len(one.hashes)]), (other, place[len(one.hashes) :])):
        missed = np.full(len(hashes), each.closed)  # what is not in memory occurred at most so often
        missed[mine] = each.errors
        errors += missed
        counts[mine] += each.counts
    closed = one.closed + other.closed
    stays = counts + errors > closed
    return Memory(closed, hashes[stays], counts[stays], errors[stays])


def _close(memory: Memory, windows: NDArray[np.uint64]) -> Memory:
    """The memory after some more windows, one in each row."""
    fresh, times, number = _occurrences(windows)
    number += memory.closed + 1
    hashes = np.concatenate([memory.hashes, fresh])
    counts = np.concatenate([memory.counts, times])
    errors = np.concatenate([memory.errors, number - 1])
    # What is in memory counts as an occurrence in the last closed window that gave it its slack.
    gains = np.concatenate([memory.counts + memory.errors - memory.closed + 1, times])
    number = np.concatenate([np.full(len(memory.hashes), memory.closed), number])
    closed = memory.closed + len(windows)

    order = np.argsort(hashes, kind="stable")  # merges sorted runs: linear for one window
    hashes = hashes[order]
    entry, last, reached = _walk(gains[order], number[order], np.flatnonzero(_changes(hashes)), closed)
    kept = counts[order[entry]] + reached[last] - reached[entry]
    return Memory(closed, hashes[entry], kept, errors[order[entry]])


def _walk(gains: Ints, number: Ints, first: Ints, closed: int) -> tuple[Ints, Ints, Ints]:
    """The occurrence at which each item that stays entered memory, its last one, and all sums of gains.

    The occurrences of an item follow each other from its `first` one on, by window. From one of them on
    the slack gains what came since, less the windows since; the best of them is where it was 0 last.
    """
    reached = np.cumsum(gains)
    start = reached - gains - number + 1
    last = np.append(first[1:], len(gains)) - 1
    lowest = np.minimum.reduceat(start, first)
    stays = reached[last] - lowest > closed
    lows = start == np.repeat(lowest, last - first + 1)
    entry = np.maximum.reduceat(np.where(lows, np.arange(len(gains)), -1), first)
    return entry[stays], last[stays], reached


def _occurrences(windows: NDArray[np.uint64]) -> tuple[Hashes, Ints, Ints]:
    """Each item of each window with how often it occurs there and the number of the window, from 0 on."""
    width = windows.shape[1]
    flat = np.sort(windows, axis=1).reshape(-1)
    changes = _changes(flat)
    changes[::width] = True
    at = np.flatnonzero(changes)
    return flat[at], np.diff(at, append=len(flat)), at // width


def _changes(values: Hashes) -> NDArray[np.bool_]:
    """Whether each value differs from the one before; the first does."""
    changes = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes
