"""Lossy counting: all items above a frequency, in space that is logarithmic in the length of the stream.

Every item that makes up at least a share `support` of the stream is reported, none below `support` -
`epsilon`, and counts are too low by at most `epsilon` of the stream ([003] §4.1.2).

The stream is cut into windows of 1/epsilon items. An item that is not in memory enters window i with
count 1 and error i - 1; when window i closes, items with count + error <= i leave. Many windows are
closed at once here, with the same result: the slack of an item, count + error - i, starts at 0, grows by
its occurrences in a window less one, and the item leaves when the slack is back at 0. So items are
independent, and the slack of one after the last window is its highest gain counted from any of its windows.
Runs of items are taken in window by window, each at the cost of the runs in it.
"""

from dataclasses import dataclass, replace
from math import ceil
from typing import Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import BadRouting
from penstock.sketches.counted import Counted, by_count
from penstock.sketches.runs import Runs
from penstock.sketches.wire import pack, unpack

__all__ = ["LossyCounting", "Memory"]

Hashes = NDArray[np.uint64]
Ints = NDArray[np.int64]

_LEAST_EPSILON = 1e-7  # a window of 80 MB
_BLOCK = 24_576  # items that are worked on at once, unless one window has more


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
    16/epsilon bytes.

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
        self._open: list[Runs] = []  # the window that is not full yet
        self._filled = 0

    @property
    def total(self) -> int:
        """How many items were seen."""
        return self.memory.closed * self.window + self._filled

    @property
    def open(self) -> Runs:
        """The items of the window that is not full yet."""
        return Runs.joined(self._open)

    def update(self, items: Hashes | Runs) -> None:
        """Take in items, in their order."""
        if isinstance(items, Runs):
            while len(items) > self.window - self._filled:
                room = self.window - self._filled
                self._fill(items[:room])
                items = items[room:]
            self._fill(items)
            return
        missing = (self.window - self._filled) % self.window
        start = min(missing, len(items))
        self._fill(Runs.of(items[:start]))
        end = start + (len(items) - start) // self.window * self.window
        windows = items[start:end].reshape(-1, self.window)
        step = max(1, _BLOCK // self.window)
        for number in range(0, len(windows), step):
            some = windows[number : number + step]
            self.memory = _close(self.memory, *_occurrences(some), len(some))
        self._fill(Runs.of(items[end:]))

    def items(self) -> Counted:
        """Everything in memory, with the window that is not full yet."""
        memory = self.memory
        fresh, times = self.open.counted()
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
            raise BadRouting(f"counters have epsilon {self.epsilon} and {other.epsilon}; give both the same")
        self.memory = _union(self.memory, other.memory)
        self.update(other.open)

    def to_bytes(self) -> bytes:
        """A form to send or to store."""
        memory = self.memory
        numbers = {"epsilon": self.epsilon, "closed": memory.closed, "others": self.open.others}
        hashes, counts = self.open.counted()
        kept = [memory.hashes, memory.counts, memory.errors, hashes, counts]
        return pack("lossy-counting", numbers, kept)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The counter that `to_bytes` wrote."""
        numbers, (hashes, counts, errors, rest, times) = unpack("lossy-counting", data)
        counter = cls(numbers["epsilon"])
        counter.memory = Memory(numbers["closed"], hashes, counts, errors)
        counter.update(Runs(rest, times, numbers["others"]))
        return counter

    def _fill(self, items: Runs) -> None:
        """Take in items that the open window has room for, and close it when it is full."""
        if not (size := len(items)):
            return
        self._open.append(items)
        self._filled += size
        if self._filled == self.window:
            # The others of a window leave with it.
            fresh, times = self.open.counted()
            self.memory = _close(self.memory, fresh, times, np.zeros(len(fresh), np.int64), 1)
            self._open, self._filled = [], 0


def _union(one: Memory, other: Memory) -> Memory:
    """The memory of both streams together."""
    hashes, place = np.unique(np.concatenate([one.hashes, other.hashes]), return_inverse=True)
    counts, errors = np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
    for each, mine in ((one, place[: len(one.hashes)]), (other, place[len(one.hashes) :])):
        missed = np.full(len(hashes), each.closed)  # what is not in memory occurred at most this often
        missed[mine] = each.errors
        errors += missed
        counts[mine] += each.counts
    closed = one.closed + other.closed
    stays = counts + errors > closed
    return Memory(closed, hashes[stays], counts[stays], errors[stays])


def _close(memory: Memory, fresh: Hashes, times: Ints, number: Ints, windows: int) -> Memory:
    """The memory after some more windows, from the occurrences in each of them."""
    lasting = _may_last(fresh, times, memory.hashes)
    fresh, times, number = fresh[lasting], times[lasting], number[lasting] + memory.closed + 1
    hashes = np.concatenate([memory.hashes, fresh])
    counts = np.concatenate([memory.counts, times])
    errors = np.concatenate([memory.errors, number - 1])
    # What is in memory counts as an occurrence in the last closed window that gave it its slack.
    gains = np.concatenate([memory.counts + memory.errors - memory.closed + 1, times])
    number = np.concatenate([np.full(len(memory.hashes), memory.closed), number])
    closed = memory.closed + windows
    if not len(hashes):
        return replace(memory, closed=closed)

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


def _may_last(hashes: Hashes, times: Ints, known: Hashes) -> Ints:
    """The occurrences that may outlive their window; those that cannot are most of a skewed stream.

    An item that occurs once in a window leaves with it, unless it was in memory before: from earlier, or
    because it occurs more than once in one of these windows. Both are looked up by the low bits of the
    hash alone, which errs on the safe side.
    """
    repeated = np.flatnonzero(times > 1)
    mask = np.uint64((1 << (4 * len(hashes)).bit_length()) - 1)
    marked = np.zeros(int(mask) + 1, np.bool_)
    marked[(known & mask).view(np.int64)] = True
    marked[(hashes[repeated] & mask).view(np.int64)] = True
    return np.flatnonzero(marked[(hashes & mask).view(np.int64)])


def _changes(values: Hashes) -> NDArray[np.bool_]:
    """Whether each value differs from the one before; the first does."""
    changes = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes
