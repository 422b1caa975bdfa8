"""Rows in event order, for operators that look at the rows of a key one after another.

A row waits in a time table until the frontier has passed it. Then no earlier row can come, so what such an
operator gives depends neither on the order of arrival nor on how epochs are cut. Rows of one key and one time
go by their content.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.columns import TIME
from penstock.expressions.duck import cursor
from penstock.operators.kernel import Advance, Channel, Kernel, Seen, StagePosition
from penstock.state.keys import Ordered
from penstock.state.time_table import OpenTimeTable
from penstock.state.version_table import NO_TIMER

__all__ = ["ALWAYS", "EventOrderKernel", "in_event_order", "or_never", "released"]

ALWAYS = NO_TIMER - 1
"""A time after every row."""
_NEVER = -(2**62)

Places = NDArray[np.int64]


class EventOrderKernel(Kernel):
    """A kernel with one port whose rows are taken once the frontier has passed them."""

    def bound(self, position: StagePosition, port: int) -> int | None:
        """The frontier, since every row before it has been taken."""
        return position.frontier(port)

    def advance(
        self, before: StagePosition, frontiers: tuple[int | None, ...], seen: Seen, drained: int | None
    ) -> Advance:
        """Results of rows that wait or are still to come are not before the frontier."""
        nothing = not seen.rows and not seen.state
        if drained is not None:
            return Advance(StagePosition((drained,), drained), idle=nothing, ended=True)
        unchanged = not seen.rows and frontiers == before.frontiers
        return Advance(StagePosition(frontiers, frontiers[0]), idle=nothing or unchanged)


def released(channel: Channel, waiting: OpenTimeTable, new: Any, until: int) -> list[Any]:
    """The rows of a channel before a time: those that waited, and the new ones if there are any."""
    found = waiting.between(or_never(channel.before.frontier(0)), until)
    if new is not None:
        passed = new[TIME].to_numpy() < until
        found.append(new if passed.all() else new.filter(pa.array(passed)))
    return found


def or_never(time: int | None) -> int:
    """A frontier as a number: before every row while nothing is promised."""
    return _NEVER if time is None else time


def in_event_order(found: Ordered, times: Places, content: Any) -> Ordered:
    """The same order, with rows of one key and one time sorted by content; without such rows it is free.

    The order of events therefore never depends on the order of arrival.
    """
    moments = times[found.order]
    tied = (np.diff(moments) == 0) & (np.diff(found.groups) == 0)
    if not tied.any() or not content.num_columns:
        # Rows without content are all alike, and a table without columns forgets how many rows it has.
        return found
    places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
    runs = np.cumsum(~np.append(False, tied))[places]
    rows = found.order[places]
    order = found.order.copy()
    order[places] = rows[np.lexsort((_ranks(content.take(pa.array(rows))), runs))]
    return Ordered(order, found.groups, found.first)


def _ranks(content: Any) -> Places:
    """The rank of each row by all columns; equal rows get ranks in any order."""
    columns = [_sortable(column) for column in content.columns]
    # Zeros of both signs compare as equal, so their signs decide, after all else.
    floats = [column for column in columns if pa.types.is_floating(column.type)]
    columns += [pa.array(np.signbit(column.to_numpy())) for column in floats]
    plain = pa.table({str(place): column for place, column in enumerate(columns)})
    ranks = np.empty(content.num_rows, np.int64)
    order = pc.sort_indices(plain, [(name, "ascending") for name in plain.column_names])
    ranks[order.to_numpy()] = np.arange(content.num_rows)
    return ranks


def _sortable(column: Any) -> Any:
    if not pa.types.is_nested(column.type):
        return column
    with cursor() as engine:
        engine.register("input", pa.table({"c": column}))
        return engine.sql("SELECT hash(c) AS c FROM input").to_arrow_table()["c"]
