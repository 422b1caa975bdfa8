"""Routers as native Spark expressions: they give exactly what `route` gives, row by row, without Python.

A hash is `xxhash64` of the key columns: a signed long with the bits of the unsigned hash that routers
take. The arrays of a router are literals in the plan, so a route is two shifts and at most three array
accesses in generated code. Rows that go to several channels get an array of them, to be exploded; each agrees
with `left` and `right` of its router, copy by copy and in their order. Rows that are sent round robin take a
running number; since their partials are merged again, a task that runs twice may send them in another order.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.classic import column as classic

from penstock.routing import Batches, Grid, JoinSpread, PlainPanes, RatePanes, SubKeys, WindowChannels
from penstock.routing.arrays import CHANNEL_BITS, RouteArrays

__all__ = [
    "grid_left_column",
    "grid_right_column",
    "literal_array",
    "plain_pane_column",
    "rate_pane_column",
    "route_column",
    "run_column",
    "spread_left_column",
    "spread_right_column",
    "sub_key_column",
    "window_column",
]

_ARRAY = "array<int>"
_POSITION_BITS = 33
"""The low bits of Spark's running number that count the rows of a task."""


def literal_array(values: NDArray[np.integer]) -> Column:
    """One array literal of longs; needs a running session.

    The values go to the JVM as one buffer: `lit` of a list or an array would make a call for each element.
    An expression that builds the array, such as `from_json`, is not always folded before it is evaluated.
    """
    context: Any = SparkContext._active_spark_context  # noqa: SLF001 -- as `lit` itself does
    assert context is not None, "no Spark session is active; start one before routing"
    gateway, jvm = context._gateway, context._jvm  # noqa: SLF001 -- as `lit` itself does
    longs = gateway.new_array(jvm.long, len(values))
    jvm.java.nio.ByteBuffer.wrap(values.astype(">i8").tobytes()).asLongBuffer().get(longs)
    return classic.Column(jvm.org.apache.spark.sql.functions.lit(longs))


def route_column(hashes: Column, arrays: RouteArrays) -> Column:
    """The channel (an int) of each hash (a long, as `xxhash64` gives it)."""
    ring = literal_array(arrays.ring)
    if len(arrays.ring) == 1:
        entry = F.get(ring, F.lit(0))
    else:
        entry = F.get(ring, F.shiftrightunsigned(hashes, arrays.shift).cast("int"))
    channel = entry.bitwiseAND((1 << CHANNEL_BITS) - 1)
    if arrays.slots:
        table = literal_array(arrays.table)
        folded = hashes.bitwiseXOR(F.shiftrightunsigned(hashes, arrays.fold))
        displacement = F.shiftright(entry, CHANNEL_BITS)
        slot = folded.bitwiseAND(arrays.slots - 1).bitwiseXOR(displacement).cast("int")
        channel = F.when(F.get(table, slot) == hashes, F.get(table, slot + arrays.slots)).otherwise(channel)
    return channel.cast("int")


def grid_left_column(hashes: Column, grid: Grid) -> Column:
    """The channels of left rows of a Cartesian product: all channels of the grid column of the hash."""
    least, more = divmod(grid.channels, grid.columns)
    part = _scaled(hashes, F.lit(grid.channels))
    tall = more * (least + 1)
    low = part >= tall
    height = F.when(low, F.lit(least)).otherwise(F.lit(least + 1))
    first = part - F.pmod(part - F.when(low, F.lit(tall)).otherwise(F.lit(0)), height)
    return F.sequence(first, first + height - 1).cast(_ARRAY)


def grid_right_column(hashes: Column, grid: Grid) -> Column:
    """The channels of right rows of a Cartesian product: one of every grid column, at equal distances."""
    least, more = divmod(grid.channels, grid.columns)
    tall = more * (least + 1)
    runs = []
    for first, height, columns in ((0, least + 1, more), (tall, least, grid.columns - more)):
        if columns:
            start = _scaled(hashes, F.lit(height)) + first
            step = F.lit(height).cast("long")
            runs.append(F.sequence(start, start + height * (columns - 1), step))
    return F.concat(*runs).cast(_ARRAY)


def spread_left_column(hashes: Column, salts: Column, router: JoinSpread) -> Column:
    """The channels of left rows of an equi-join: one, or all of a column of the key's grid."""
    route = route_column(hashes, router.arrays)
    if not len(router.cells):
        return F.array(route)
    place = F.bitwise_not(route)
    size = F.get(literal_array(router.counts), place)
    cell = (F.get(literal_array(router.starts), place) + _scaled(salts, size)).cast("int")
    first = F.get(literal_array(router.firsts[router.cell_columns]), cell)
    height = F.get(literal_array(router.heights[router.cell_columns]), cell)
    spread = F.slice(literal_array(router.cells), (first + 1).cast("int"), height.cast("int"))
    return F.when(route >= 0, F.array(route)).otherwise(spread.cast(_ARRAY))


def spread_right_column(hashes: Column, salts: Column, router: JoinSpread) -> Column:
    """The channels of right rows of an equi-join: one, or one of every column of the key's grid."""
    route = route_column(hashes, router.arrays)
    if not len(router.cells):
        return F.array(route)
    place = F.bitwise_not(route)
    begin = F.get(literal_array(router.column_starts), place)
    columns = F.sequence(begin, begin + F.get(literal_array(router.across), place) - 1)

    def channel(column: Column) -> Column:
        at = column.cast("int")
        row = _scaled(salts, F.get(literal_array(router.heights), at))
        return F.get(literal_array(router.cells), (F.get(literal_array(router.firsts), at) + row).cast("int"))

    return F.when(route >= 0, F.array(route)).otherwise(F.transform(columns, channel).cast(_ARRAY))


def _scaled(numbers: Column, sizes: Column) -> Column:
    """Into which of this number of equal ranges of all 64-bit numbers each one falls."""
    return F.shiftright(F.shiftrightunsigned(numbers, 32) * sizes, 32)


def sub_key_column(hashes: Column, sequence: Column, router: SubKeys) -> Column:
    """The channel of every row from the 64-bit hash of its key; hot keys go round robin to their sub-keys."""
    route = route_column(hashes, router.arrays)
    if not len(router.targets):
        return route
    place = F.bitwise_not(route)
    turn = F.pmod(sequence, literal_array(router.counts)[place])
    target = literal_array(router.targets)[literal_array(router.starts)[place] + turn]
    return F.when(route >= 0, route).otherwise(target.cast("int"))


def plain_pane_column(panes: Column, router: PlainPanes) -> Column:
    """The channel of every row from the id of its pane: whole panes round robin."""
    return F.pmod(panes, F.lit(router.channels)).cast("int")


def rate_pane_column(panes: Column, sequence: Column, router: RatePanes) -> Column:
    """The channel of every row from the id of its pane; split panes go round robin to their slots."""
    plain = plain_pane_column(panes, PlainPanes(router.channels))
    if not len(router.homes):
        return plain
    home = literal_array(router.homes)[panes - F.lit(router.first)]
    channel = home
    if len(router.slots):
        place = F.bitwise_not(home) + sequence.bitwiseAND(F.lit(router.width - 1))
        channel = F.when(home >= 0, home).otherwise(literal_array(router.slots)[place])
    planned = panes.between(router.first, router.first + len(router.homes) - 1)
    return F.when(planned, channel.cast("int")).otherwise(plain)


def run_column(run: int, channels: int) -> Column:
    """The channel of every row by its position in its task: runs of this many rows in turn ([000] §4.2).

    Rows come about in the order of time. A run as long as a mean pane therefore has the rows of one pane and
    the next; a larger pane is cut, and smaller ones share a run, whatever the rates are.
    """
    number = F.monotonically_increasing_id()
    position, task = number.bitwiseAND((1 << _POSITION_BITS) - 1), F.shiftright(number, _POSITION_BITS)
    turn = F.floor(position / run) + task
    return F.pmod(turn, F.lit(channels)).cast("int")


def window_column(time: str, windows: WindowChannels) -> Column:
    """The channels that compute the windows of each row, an array, from SQL for its time in microseconds."""
    shape = windows.shape
    ahead = f"({time} - {shape.offset}L)"
    first = f"({_floored(f'({ahead} - {shape.size}L)', shape.slide)} + 1)"
    last = _floored(ahead, shape.slide)
    return F.expr(_window_channels(windows.batches, windows.channels, first, last))


def _window_channels(batches: Batches, channels: int, first: str, last: str) -> str:
    if batches.earlier is None:
        return _batch_channels(batches, channels, first, last)
    before = _window_channels(batches.earlier, channels, first, f"least({last}, {batches.start - 1}L)")
    after = _batch_channels(batches, channels, f"greatest({first}, {batches.start}L)", last)
    return f"array_distinct(concat({before}, {after}))"


def _batch_channels(batches: Batches, channels: int, first: str, last: str) -> str:
    one, other = (_floored(f"({each} - {batches.start}L)", batches.size) for each in (first, last))
    numbers = f"sequence({one}, least({other}, {one} + {channels - 1}L))"
    found = f"transform({numbers}, batch -> cast(pmod(batch, {channels}L) AS int))"
    # A sequence to a smaller number would go down.
    return f"CASE WHEN {first} <= {last} THEN {found} ELSE CAST(array() AS {_ARRAY}) END"


def _floored(number: str, by: int) -> str:
    """A quotient rounded down, in exact integer arithmetic also below zero."""
    return f"(({number} - pmod({number}, {by}L)) div {by}L)" if by != 1 else number
