"""A join by windows: in which of its windows a row has matched, and what it gives for each of them.

A row is in a run of neighbouring windows. A partner that is not later shares with it the first of these, up
to the last that had begun; a later partner shares the last ones, from the first that had not ended. So the
windows in which it has matched are some first and some last ones, and two counts are all that is kept,
however many windows and partners there are.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.operators.joins.inputs import SideRows
from penstock.operators.joins.judging import Duties
from penstock.operators.joins.result import JoinResult
from penstock.operators.joins.spans import Mask, Numbers, Rows, runs
from penstock.operators.joins.spec import END, ByWindow, Frontiers, JoinSpec, Pair

__all__ = ["Coverage", "deliver_windows"]

# Two counts of windows are one number, as the marks of a state table.
_HALF = 32


@dataclass(frozen=True, eq=False)
class Coverage:
    """For each row of a side: its first and last window, and how many first and last ones have a match.

    `opened` is the first window that was open before the epoch, `closing` the first that is after it, for
    rows that can match no more the one after their last.
    """

    windows: ByWindow
    time: Rows
    first: Numbers
    last: Numbers
    front: Numbers
    back: Numbers
    opened: int
    closing: Numbers

    @classmethod
    def of(
        cls, windows: ByWindow, side: SideRows, before: Frontiers, after: Frontiers, marks: Numbers
    ) -> "Coverage":
        """With the marks of earlier epochs."""
        first, last = windows.first_with(side.time), windows.last_with(side.time)
        closing = last + 1
        if after.both is None or after.both < END:
            able = side.joinable(np.ones(len(side), np.bool_))
            closing = np.where(able, np.minimum(windows.first_open(after.both), closing), closing)
        front, back = marks >> _HALF, marks & ((1 << _HALF) - 1)
        return cls(windows, side.time, first, last, front, back, windows.first_open(before.both), closing)

    @property
    def marks(self) -> Numbers:
        """What is kept for later epochs."""
        found: Numbers = self.front << _HALF | self.back
        return found

    @property
    def lacking(self) -> Mask:
        """Which rows have a window without a match that stays open."""
        found: Mask = np.maximum(self.first + self.front, self.closing) <= self.last - self.back
        return found

    def match(self, rows: Rows, partners: Rows) -> None:
        """Note that these rows have matched partners of these times."""
        later = partners > self.time[rows]
        one, two = rows[~later], rows[later]
        shared = self.windows.last_with(partners[~later]) - self.first[one] + 1
        np.maximum.at(self.front, one, shared)
        shared = self.last[two] - self.windows.first_with(partners[later]) + 1
        np.maximum.at(self.back, two, shared)

    def without_match(self, rows: Rows) -> tuple[Numbers, Numbers]:
        """The first window of each row that is open and without a match, and the one after the last."""
        low = np.maximum(self.first[rows] + self.front[rows], self.opened)
        return low, np.maximum(self.last[rows] - self.back[rows] + 1, low)

    def closed_without_match(self) -> Iterator[tuple[Rows, Rows]]:
        """Blocks of (rows, starts of windows) that this epoch closes without a match."""
        low, high = self.without_match(np.arange(len(self.time)))
        for row, window in runs(low, np.minimum(high, self.closing)):
            yield row, self.windows.start(window)


def deliver_windows(  # noqa: PLR0913, PLR0917 -- what an epoch found, and where it goes
    join: JoinSpec,
    sides: Pair[Coverage],
    pairs: Iterator[tuple[Rows, Rows]],
    result: JoinResult,
    deliver: Callable[[Any], None],
    duties: Duties | None = None,
) -> None:
    """Deliver each pair in each open window that holds both, and rows in windows that close without a match.

    A semi join delivers a row in each window in which it has a match, at the first one.
    """
    semi, (notes_left, notes_right) = join.how == "semi", join.notes_matches
    told = None if duties is None else ~duties.silent(0, np.arange(len(sides.left.time)))
    for one, other in pairs:
        if join.pairs:
            own = slice(None) if told is None else told[one]
            for which, start in _common(sides, one[own], other[own]):
                deliver(result.matched(one[own][which], other[own][which], start))
        if semi:
            for row, start in _newly_matched(sides.left, one, sides.right.time[other]):
                deliver(result.left_alone(row, start))
        elif notes_left:
            sides.left.match(one, sides.right.time[other])
        if notes_right:
            sides.right.match(other, sides.left.time[one])
    outer_left, outer_right = join.keeps_unmatched
    if outer_left:
        _deliver_alone(sides.left, result.left_alone, deliver, duties, port=0)
    if outer_right:
        _deliver_alone(sides.right, result.right_alone, deliver, duties, port=1)


def _deliver_alone(
    side: Coverage,
    table: Callable[[Rows, Rows], Any],
    deliver: Callable[[Any], None],
    duties: Duties | None,
    *,
    port: int,
) -> None:
    for row, start in side.closed_without_match():
        if duties is None:
            deliver(table(row, start))
        elif (own := duties.judged(port, row)).any():
            deliver(table(row[own], start[own]))


def _common(sides: Pair[Coverage], left: Rows, right: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Blocks of (places of pairs, starts of open windows that hold both rows)."""
    low = np.maximum(sides.left.first[left], sides.right.first[right])
    high = np.minimum(sides.left.last[left], sides.right.last[right]) + 1
    for which, window in runs(np.maximum(low, sides.left.opened), high):
        yield which, sides.left.windows.start(window)


def _newly_matched(side: Coverage, rows: Rows, partners: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Note matches; blocks of (rows, starts of open windows) that had none before."""
    distinct = np.unique(rows)
    low, high = side.without_match(distinct)
    side.match(rows, partners)
    begin, end = side.without_match(distinct)
    # What is still without a match is a run inside the one before; if it is empty, all of that has one now.
    empty = begin >= end
    begin, end = np.where(empty, high, begin), np.where(empty, high, end)
    for first, last in ((low, begin), (end, high)):
        for which, window in runs(first, last):
            yield distinct[which], side.windows.start(window)
