"""Sets and bags of values while a channel works on them: runs of numbers in one pool, and their union.

A channel numbers all values that it works on together once. A set is then a run of numbers, a bag one with a
count for each, and merging any number of pairs of them is one sort of numbers, whatever the values are.
"""

from dataclasses import dataclass

import numpy as np

from penstock.aggregates.merges import Array, Lanes

__all__ = ["MemberPool", "Union"]

Members = tuple[Array, ...]
"""The numbers of members, and in bags how often each is there."""


class MemberPool:
    """Sets of numbers below `kinds`, or bags if they are `counted`: end to end, each known by its place."""

    def __init__(self, kinds: int, *, counted: bool) -> None:
        self.counted = counted
        self._bits = np.int64(max(1, int(kinds).bit_length()))
        # Sets of many overlapping windows are in memory together, so half the bytes matter.
        self._members: list[Array] = [np.empty(0, np.int32)]
        self._members += [np.empty(0, np.int64)] if counted else []
        self._used = 0
        self._lengths, self._starts = np.empty(0, np.int64), np.empty(0, np.int64)

    def gathered(self, places: Array) -> tuple[Array, Members]:
        """For each member of each of the given sets, the place of its set among them, and the member."""
        lengths = self._lengths[places]
        owners = np.repeat(np.arange(len(places), dtype=np.int64), lengths)
        shift = self._starts[places] - (np.cumsum(lengths) - lengths)
        at = np.arange(len(owners)) + np.repeat(shift, lengths)
        return owners, tuple(each[at] for each in self._members)

    def united(self, owners: Array, members: Members, count: int) -> Array:
        """New sets 0 to `count` - 1, each of the members with its number as owner; n log n."""
        codes, *counts = members
        pairs = (owners << self._bits) | codes
        if counts:
            order = np.argsort(pairs, kind="stable")
            pairs, counts = pairs[order], [counts[0][order]]
        else:
            pairs.sort()
        if len(pairs):
            first = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
            pairs, counts = pairs[first], [np.add.reduceat(each, first) for each in counts]
        lengths = np.bincount(pairs >> self._bits, minlength=count)
        return self.added((pairs & ((np.int64(1) << self._bits) - np.int64(1)), *counts), lengths)

    def added(self, members: Members, lengths: Array) -> Array:
        """The places of new sets of these lengths, which have the members in turn, each once."""
        needed = self._used + len(members[0])
        if needed > len(self._members[0]):
            # Twice the room each time, so that many small merges copy every member a few times only.
            room = max(needed, 2 * len(self._members[0]))
            self._members = [
                np.concatenate([each[: self._used], np.empty(room - self._used, each.dtype)])
                for each in self._members
            ]
        for held, new in zip(self._members, members, strict=True):
            held[self._used : needed] = new
        first = len(self._lengths)
        self._starts = np.concatenate([self._starts, np.cumsum(lengths) - lengths + self._used])
        self._lengths = np.concatenate([self._lengths, lengths])
        self._used = needed
        return np.arange(first, first + len(lengths), dtype=np.int64)

    def runs(self, lane: Array) -> tuple[Array, Members]:
        """The number of members of each cell of a lane, and all of them in turn."""
        held = lane >= 0
        owners, members = self.gathered(lane[held])
        lengths = np.zeros(len(held), np.int64)
        lengths[held] = np.bincount(owners, minlength=int(held.sum()))
        return lengths, members


@dataclass(frozen=True)
class Union:
    """A cell holds the place of its set or bag in the pool, or -1 for an empty one."""

    pool: MemberPool

    def identity(self, cells: int) -> Lanes:
        """Empty ones."""
        return (np.full(cells, -1, np.int64),)

    def scatter(self, cells: int, at: Array, rows: Lanes) -> Lanes:
        """One sort of all members of all rows, unless each cell has one row and nothing is to merge."""
        present = np.flatnonzero(rows[0] >= 0)
        cell, held = at[present], rows[0][present]
        (lane,) = self.identity(cells)
        times = np.bincount(cell, minlength=cells)
        alone = times[cell] == 1
        lane[cell[alone]] = held[alone]
        if not alone.all():
            shared = np.flatnonzero(times > 1)
            place = np.empty(cells, np.int64)
            place[shared] = np.arange(len(shared))
            owners, members = self.pool.gathered(held[~alone])
            lane[shared] = self.pool.united(place[cell[~alone]][owners], members, len(shared))
        return (lane,)

    def combine(self, left: Lanes, right: Lanes, out: Lanes) -> None:
        """Pairs of which one side is empty cost nothing, nor does a set with itself."""
        one, other = np.broadcast_arrays(left[0], right[0])
        both = (one >= 0) & (other >= 0)
        if not self.pool.counted:
            both &= one != other
        result = np.maximum(one, other)
        if both.any():
            sides = [self.pool.gathered(side[both]) for side in (one, other)]
            owners = np.concatenate([side[0] for side in sides])
            members = tuple(np.concatenate(pair) for pair in zip(*(side[1] for side in sides), strict=True))
            result[both] = self.pool.united(owners, members, int(both.sum()))
        np.copyto(out[0], result)
