"""Which pairs an epoch has to look at, and which rows stay for later epochs.

A pair is a candidate in exactly one epoch: the one in which the second of its rows is new (or, where
event order decides, in which the frontiers pass it). New rows probe what is kept and new on the other
side; then new rows of the other side probe what is kept on this side.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.joins.inputs import Input
from penstock.joins.join import END, Frontiers, Last, Within
from penstock.joins.last import Ordered, in_order, last_rows, preceding
from penstock.joins.numbering import Numbers, number_by_new
from penstock.joins.spans import Rows, Spans
from penstock.joins.state import Mask, Pair
from penstock.joins.within import Timed, near

__all__ = ["Candidates", "by_count", "by_time"]


@dataclass(frozen=True)
class Candidates:
    """Spans of probing left rows, spans of probing right rows, and the rows of each side that stay."""

    left_probes: Spans | None
    right_probes: Spans | None
    stay: Pair[Mask]


def by_time(bound: Within, left: Input, right: Input, after: Frontiers) -> Candidates:
    """Candidates within a distance; a row stays while the other side can bring one near enough."""
    new = Pair(np.arange(left.kept, len(left)), np.arange(right.kept, len(right)))
    old = Pair(np.arange(left.kept), np.arange(right.kept))
    number = _numbers(left, right, new, old)
    fresh = Timed(new.left, number.left[new.left], left.time[new.left])
    return Candidates(
        near(fresh, Timed(np.arange(len(right)), number.right, right.time), bound.distance),
        near(
            Timed(new.right, number.right[new.right], right.time[new.right]),
            Timed(old.left, number.left[old.left], left.time[old.left]),
            bound.distance,
        ),
        Pair(_near_to_come(bound, left, after.right), _near_to_come(bound, right, after.left)),
    )


def _near_to_come(bound: Within, side: Input, frontier: int | None) -> Mask:
    if frontier is not None and frontier >= END:
        return np.zeros(len(side), np.bool_)
    return side.joinable & side.from_on(None if frontier is None else frontier - bound.distance)


def by_count(bound: Last, left: Input, right: Input, before: Frontiers, after: Frontiers) -> Candidates:
    """Candidates among the last rows; a row stays while it waits or is among the last of its key."""
    waiting = Pair(left.from_on(after.both), right.from_on(after.both))
    due = Pair(_due(left, before, waiting.left), _due(right, before, waiting.right))
    passed = Pair(~waiting.left & ~due.left, ~waiting.right & ~due.right)
    number = _numbers(
        left,
        right,
        Pair(np.flatnonzero(due.left), np.flatnonzero(due.right)),
        Pair(np.flatnonzero(passed.left), np.flatnonzero(passed.right)),
    )
    ordered = _ordered(left, right, number)
    return Candidates(
        preceding(ordered.left.at(due.left), ordered.right, bound.rows),
        preceding(ordered.right.at(due.right), ordered.left, bound.rows),
        Pair(
            _last_to_come(bound, left, ordered.left, waiting.left, ends=_ended(after.right, waiting.right)),
            _last_to_come(bound, right, ordered.right, waiting.right, ends=_ended(after.left, waiting.left)),
        ),
    )


def _due(side: Input, before: Frontiers, waiting: Mask) -> Mask:
    """The rows that the frontiers pass in this epoch: event order among them is settled."""
    return (side.from_on(before.both) | side.is_new) & ~waiting


def _ended(frontier: int | None, waiting: Mask) -> bool:
    return frontier is not None and frontier >= END and not waiting.any()


def _last_to_come(bound: Last, side: Input, ordered: Ordered, waiting: Mask, *, ends: bool) -> Mask:
    stay = side.joinable.copy()
    stay[ordered.rows[~last_rows(ordered, bound.rows)]] = False
    return stay & waiting if ends else stay


def _ordered(left: Input, right: Input, number: Pair[Numbers]) -> Pair[Ordered]:
    """The rows of both sides whose keys are touched, by key and event order."""
    rows = Pair(np.flatnonzero(number.left >= 0), np.flatnonzero(number.right >= 0))
    cut = len(rows.left)
    times = np.concatenate([left.time[rows.left], right.time[rows.right]])
    rank = in_order(times, _ties(left, right, rows), np.arange(len(times)) >= cut)
    return Pair(
        Ordered.of(rows.left, number.left[rows.left], rank[:cut], len(times)),
        Ordered.of(rows.right, number.right[rows.right], rank[cut:], len(times)),
    )


def _ties(left: Input, right: Input, rows: Pair[Rows]) -> list[Any]:
    columns = []
    for one, other in zip(left.side.ties, right.side.ties, strict=True):
        first = left.rows[one].take(pa.array(rows.left))
        second = right.rows[other].take(pa.array(rows.right)).cast(first.type)
        columns.append(pa.chunked_array(first.chunks + second.chunks, first.type))
    return columns


def _numbers(left: Input, right: Input, new: Pair[Rows], old: Pair[Rows]) -> Pair[Numbers]:
    """Key numbers of all rows of both sides; -1 for those whose key no row of `new` has."""
    numbers = Pair(np.full(len(left), -1), np.full(len(right), -1))
    chosen = [(left, new.left), (right, new.right), (left, old.left), (right, old.right)]
    if left.side.keys:
        columns = [[_at(column, rows) for column in side.keys] for side, rows in chosen]
        ours, theirs = number_by_new(columns[:2], columns[2:])
        found = [*ours, *theirs]
    else:
        found = [np.zeros(len(rows), np.int64) for _, rows in chosen]
    for (side, rows), number in zip(chosen, found, strict=True):
        (numbers.left if side is left else numbers.right)[rows] = number
    return numbers


def _at(column: Any, rows: Rows) -> Any:
    """Some rows of a column; without a copy where they are neighbours."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return column.slice(int(rows[0]), len(rows))
    return column.take(pa.array(rows))
