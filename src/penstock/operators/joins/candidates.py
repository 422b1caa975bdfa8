"""Which pairs an epoch has to examine, and which rows stay for later epochs.

A pair is a candidate in exactly one epoch: the one in which its second row is new or, if event order decides,
in which the frontiers pass it. New rows probe the kept and new rows of the other side; then the new rows of
the other side probe the kept rows of this side.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.operators.joins.inputs import NumberedRows, SideRows, number_rows, with_wanted_keys
from penstock.operators.joins.spans import (
    Mask,
    Reach,
    Rows,
    RowsInOrder,
    Spans,
    TimedRows,
    around,
    event_ranks,
    last_rows,
    near,
    preceding,
)
from penstock.operators.joins.spec import END, ByWindow, Frontiers, Last, Pair, Share, Within

__all__ = ["Candidates", "by_count", "by_time", "by_window"]

# One row in this many is sampled.
_SAMPLED = 64


@dataclass(frozen=True)
class Candidates:
    """Spans of probing left rows, spans of probing right rows, and the rows of each side that stay."""

    left_probes: Spans | None
    right_probes: Spans | None
    stay: Pair[Mask]


def by_time(bound: Within, left: SideRows, right: SideRows, after: Frontiers) -> Candidates:
    """Candidates within a distance; a row stays while the other side can bring one near enough."""
    stay = Pair(
        _near_to_come(left, after.right, bound.distance), _near_to_come(right, after.left, bound.back)
    )
    reaches = Pair(around(bound.back, bound.distance), around(bound.distance, bound.back))
    return _in_reach(left, right, reaches, stay)


def by_window(
    bound: ByWindow, left: SideRows, right: SideRows, before: Frontiers, after: Frontiers
) -> Candidates:
    """Candidates in one open window; a row stays while one of its windows is open."""
    opened = bound.first_open(before.both)

    def reach(times: Rows) -> tuple[Rows, Rows]:
        first = np.maximum(bound.first_with(times), opened)
        return bound.start(first), bound.start(bound.last_with(times)) + (bound.size - 1)

    stay = Pair(_in_open_window(bound, left, after.both), _in_open_window(bound, right, after.both))
    return _in_reach(left, right, Pair(reach, reach), stay)


def _in_open_window(bound: ByWindow, side: SideRows, frontier: int | None) -> Mask:
    if frontier is not None and frontier >= END:
        return np.zeros(len(side), np.bool_)
    stay = side.from_on(bound.floor(frontier))
    if bound.slide > bound.size:
        stay = stay & (bound.first_with(side.time) <= bound.last_with(side.time))
    return side.joinable(stay)


def _in_reach(left: SideRows, right: SideRows, reaches: Pair[Reach], stay: Pair[Mask]) -> Candidates:
    """Candidates by time: the reach of each side's rows is over times of the other side."""
    if not len(left.new_time) and not len(right.new_time):
        return Candidates(None, None, stay)
    old = Pair(
        with_wanted_keys(left, _reached(left, right, reaches.right), [right.new_keys]),
        with_wanted_keys(right, _reached(right, left, reaches.left), [left.new_keys]),
    )
    numbered = number_rows(left, right, Pair(_new(left), _new(right)), old)
    old_left, new_left = _timed(left, numbered.left)
    old_right, new_right = _timed(right, numbered.right)
    return Candidates(
        near(new_left, old_right.and_those(new_right), reaches.left),
        near(new_right, old_left, reaches.right),
        stay,
    )


def _timed(side: SideRows, numbered: NumberedRows) -> tuple[TimedRows, TimedRows]:
    """The kept and the new rows, separately."""
    cut = int(np.searchsorted(numbered.rows, side.kept))
    timed = TimedRows(numbered.rows, numbered.key, side.time[numbered.rows])
    new = timed.part(slice(cut, None))
    # A row that cannot match is no candidate, so that a condition raises whatever came in which epoch.
    able = side.joinable(np.ones(len(side), np.bool_))[new.rows]
    return timed.part(slice(0, cut)), new if able.all() else new.part(np.flatnonzero(able))


def _near_to_come(side: SideRows, frontier: int | None, distance: int) -> Mask:
    if frontier is not None and frontier >= END:
        return np.zeros(len(side), np.bool_)
    return side.joinable(side.from_on(None if frontier is None else frontier - distance))


def _new(side: SideRows) -> Rows:
    return np.arange(side.kept, len(side))


def _reached(side: SideRows, other: SideRows, reach: Reach) -> Rows | range:
    """A superset of the kept rows that are in reach of a new row of the other side.

    If a sample says that most rows are near, all are returned: keys then exclude more rows than times.
    """
    if not side.kept or not len(other.new_time):
        return range(0)
    first, last = reach(other.new_time)
    low, high = int(first.min()), int(last.max())
    time = side.time[: side.kept]
    sample = time[::_SAMPLED]
    if 2 * np.count_nonzero((sample >= low) & (sample <= high)) > len(sample):
        return range(side.kept)
    return np.flatnonzero((time >= low) & (time <= high))


def by_count(  # noqa: PLR0913, PLR0917 -- the rows and the frontiers of an epoch, and whose they are
    bound: Last,
    left: SideRows,
    right: SideRows,
    before: Frontiers,
    after: Frontiers,
    share: Share | None = None,
) -> Candidates:
    """Candidates among the last rows; a row stays while it waits or is among the last of its key.

    A row takes part once the frontiers have passed it: only then it is known which rows precede it. Event
    order decides, not the order of arrival (transparent merging: [002] §III.E). Of the rows that took part, a
    side keeps the last of every key; only newer rows of the key push them out. With a `share`, only its rows
    are candidates as the later row of a pair.
    """
    if _all_passed(left, before) and _all_passed(right, before):
        stay = Pair(_unless_ended(left, after.right), _unless_ended(right, after.left))
        return Candidates(None, None, stay)
    waiting = Pair(left.from_on(after.both), right.from_on(after.both))
    due = Pair(_due(left, before, waiting.left), _due(right, before, waiting.right))
    passed = Pair(~waiting.left & ~due.left, ~waiting.right & ~due.right)
    new = Pair(np.flatnonzero(due.left), np.flatnonzero(due.right))
    ordered = _ordered(left, right, _numbered(left, right, new, passed))
    return Candidates(
        preceding(ordered.left.at(_shared(left, due.left, share)), ordered.right, bound.rows),
        preceding(ordered.right.at(_shared(right, due.right, share)), ordered.left, bound.rows),
        Pair(
            _last_to_come(bound, left, ordered.left, waiting.left, ends=_ended(after.right, waiting.right)),
            _last_to_come(bound, right, ordered.right, waiting.right, ends=_ended(after.left, waiting.left)),
        ),
    )


def _all_passed(side: SideRows, before: Frontiers) -> bool:
    """Whether no row waits for a frontier, so that none can become due."""
    return not len(side.new_time) and before.both is not None and side.newest < before.both


def _unless_ended(side: SideRows, frontier: int | None) -> Mask:
    return np.full(len(side), frontier is None or frontier < END)


def _numbered(left: SideRows, right: SideRows, new: Pair[Rows], passed: Pair[Mask]) -> Pair[NumberedRows]:
    """The rows that are due, and earlier rows with the key of one of them."""
    if not len(new.left) and not len(new.right):
        return number_rows(left, right, new, new)
    wanted = [left.keys(new.left), right.keys(new.right)]
    old = Pair(
        with_wanted_keys(left, np.flatnonzero(passed.left), wanted),
        with_wanted_keys(right, np.flatnonzero(passed.right), wanted),
    )
    return number_rows(left, right, new, old)


def _due(side: SideRows, before: Frontiers, waiting: Mask) -> Mask:
    """The rows that the frontiers pass in this epoch: their event order is settled."""
    return (side.from_on(before.both) | side.is_new) & ~waiting


def _shared(side: SideRows, due: Mask, share: Share | None) -> Mask:
    """The rows that are due and have their partners found here."""
    if share is None or share.channels == 1:
        return due
    own: Mask = due & (side.rows[share.column].to_numpy() % share.channels == share.number)
    return own


def _ended(frontier: int | None, waiting: Mask) -> bool:
    return frontier is not None and frontier >= END and not waiting.any()


def _last_to_come(bound: Last, side: SideRows, ordered: RowsInOrder, waiting: Mask, *, ends: bool) -> Mask:
    stay = side.joinable(np.ones(len(side), np.bool_))
    stay[ordered.rows[~last_rows(ordered, bound.rows)]] = False
    return stay & waiting if ends else stay


def _ordered(left: SideRows, right: SideRows, numbered: Pair[NumberedRows]) -> Pair[RowsInOrder]:
    """The numbered rows of both sides by key and event order."""
    rows = Pair(numbered.left.rows, numbered.right.rows)
    cut = len(rows.left)
    times = np.concatenate([left.time[rows.left], right.time[rows.right]])
    rank = event_ranks(times, _ties(left, right, rows), np.arange(len(times)) >= cut)
    return Pair(
        RowsInOrder.of(rows.left, numbered.left.key, rank[:cut], len(times)),
        RowsInOrder.of(rows.right, numbered.right.key, rank[cut:], len(times)),
    )


def _ties(left: SideRows, right: SideRows, rows: Pair[Rows]) -> list[Any]:
    columns = []
    for one, other in zip(left.side.ties, right.side.ties, strict=True):
        (first,), (second,) = left.rows.taken([one], rows.left), right.rows.taken([other], rows.right)
        columns.append(pa.chunked_array([first, second.cast(first.type)], first.type))
    return columns
