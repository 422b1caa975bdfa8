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
from penstock.joins.keyed import Keyed, keyed, touched
from penstock.joins.last import Ordered, in_order, last_rows, preceding
from penstock.joins.spans import Rows, Spans
from penstock.joins.state import Mask, Pair
from penstock.joins.within import Timed, near

__all__ = ["Candidates", "by_count", "by_time"]

# Every so many rows one is looked at.
_SAMPLED = 64


@dataclass(frozen=True)
class Candidates:
    """Spans of probing left rows, spans of probing right rows, and the rows of each side that stay."""

    left_probes: Spans | None
    right_probes: Spans | None
    stay: Pair[Mask]


def by_time(bound: Within, left: Input, right: Input, after: Frontiers) -> Candidates:
    """Candidates within a distance; a row stays while the other side can bring one near enough."""
    stay = Pair(_near_to_come(bound, left, after.right), _near_to_come(bound, right, after.left))
    if not len(left.new_time) and not len(right.new_time):
        return Candidates(None, None, stay)
    old = Pair(
        touched(left, _reached(left, right, bound.distance), [right.new_keys]),
        touched(right, _reached(right, left, bound.distance), [left.new_keys]),
    )
    numbered = keyed(left, right, Pair(_new(left), _new(right)), old)
    old_left, new_left = _timed(left, numbered.left)
    old_right, new_right = _timed(right, numbered.right)
    return Candidates(
        near(new_left, old_right.and_those(new_right), bound.distance),
        near(new_right, old_left, bound.distance),
        stay,
    )


def _timed(side: Input, numbered: Keyed) -> tuple[Timed, Timed]:
    """Kept and new rows apart."""
    cut = int(np.searchsorted(numbered.rows, side.kept))
    timed = Timed(numbered.rows, numbered.key, side.time[numbered.rows])
    return timed.part(slice(0, cut)), timed.part(slice(cut, None))


def _near_to_come(bound: Within, side: Input, frontier: int | None) -> Mask:
    if frontier is not None and frontier >= END:
        return np.zeros(len(side), np.bool_)
    return side.joinable(side.from_on(None if frontier is None else frontier - bound.distance))


def _new(side: Input) -> Rows:
    return np.arange(side.kept, len(side))


def _reached(side: Input, other: Input, distance: int) -> Rows | range:
    """Kept rows among which are all that are near enough to the time of any new row of the other side.

    Where a sample says that most are near, all are given: their keys tell more than their times.
    """
    if not side.kept or not len(other.new_time):
        return range(0)
    low, high = int(other.new_time.min()) - distance, int(other.new_time.max()) + distance
    time = side.time[: side.kept]
    sample = time[::_SAMPLED]
    if 2 * np.count_nonzero((sample >= low) & (sample <= high)) > len(sample):
        return range(side.kept)
    return np.flatnonzero((time >= low) & (time <= high))


def by_count(bound: Last, left: Input, right: Input, before: Frontiers, after: Frontiers) -> Candidates:
    """Candidates among the last rows; a row stays while it waits or is among the last of its key."""
    if _all_passed(left, before) and _all_passed(right, before):
        stay = Pair(_unless_ended(left, after.right), _unless_ended(right, after.left))
        return Candidates(None, None, stay)
    waiting = Pair(left.from_on(after.both), right.from_on(after.both))
    due = Pair(_due(left, before, waiting.left), _due(right, before, waiting.right))
    passed = Pair(~waiting.left & ~due.left, ~waiting.right & ~due.right)
    new = Pair(np.flatnonzero(due.left), np.flatnonzero(due.right))
    ordered = _ordered(left, right, _touched(left, right, new, passed))
    return Candidates(
        preceding(ordered.left.at(due.left), ordered.right, bound.rows),
        preceding(ordered.right.at(due.right), ordered.left, bound.rows),
        Pair(
            _last_to_come(bound, left, ordered.left, waiting.left, ends=_ended(after.right, waiting.right)),
            _last_to_come(bound, right, ordered.right, waiting.right, ends=_ended(after.left, waiting.left)),
        ),
    )


def _all_passed(side: Input, before: Frontiers) -> bool:
    """Whether no row waits for a frontier, so that nothing can become due."""
    return not len(side.new_time) and before.both is not None and side.newest < before.both


def _unless_ended(side: Input, frontier: int | None) -> Mask:
    return np.full(len(side), frontier is None or frontier < END)


def _touched(left: Input, right: Input, new: Pair[Rows], passed: Pair[Mask]) -> Pair[Keyed]:
    """The rows that are due, and those before them that have the key of one of them."""
    if not len(new.left) and not len(new.right):
        return keyed(left, right, new, new)
    wanted = [left.keys(new.left), right.keys(new.right)]
    old = Pair(
        touched(left, np.flatnonzero(passed.left), wanted),
        touched(right, np.flatnonzero(passed.right), wanted),
    )
    return keyed(left, right, new, old)


def _due(side: Input, before: Frontiers, waiting: Mask) -> Mask:
    """The rows that the frontiers pass in this epoch: event order among them is settled."""
    return (side.from_on(before.both) | side.is_new) & ~waiting


def _ended(frontier: int | None, waiting: Mask) -> bool:
    return frontier is not None and frontier >= END and not waiting.any()


def _last_to_come(bound: Last, side: Input, ordered: Ordered, waiting: Mask, *, ends: bool) -> Mask:
    stay = side.joinable(np.ones(len(side), np.bool_))
    stay[ordered.rows[~last_rows(ordered, bound.rows)]] = False
    return stay & waiting if ends else stay


def _ordered(left: Input, right: Input, numbered: Pair[Keyed]) -> Pair[Ordered]:
    """The rows of both sides whose keys are touched, by key and event order."""
    rows = Pair(numbered.left.rows, numbered.right.rows)
    cut = len(rows.left)
    times = np.concatenate([left.time[rows.left], right.time[rows.right]])
    rank = in_order(times, _ties(left, right, rows), np.arange(len(times)) >= cut)
    return Pair(
        Ordered.of(rows.left, numbered.left.key, rank[:cut], len(times)),
        Ordered.of(rows.right, numbered.right.key, rank[cut:], len(times)),
    )


def _ties(left: Input, right: Input, rows: Pair[Rows]) -> list[Any]:
    columns = []
    for one, other in zip(left.side.ties, right.side.ties, strict=True):
        first = left.rows[one].take(pa.array(rows.left))
        second = right.rows[other].take(pa.array(rows.right)).cast(first.type)
        columns.append(pa.chunked_array(first.chunks + second.chunks, first.type))
    return columns
