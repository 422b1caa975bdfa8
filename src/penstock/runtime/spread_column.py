"""To which channels a row goes, as native Spark expressions: an array to be exploded, then `repartitionById`.

Each agrees with `left` and `right` of its router, copy by copy and in their order. Hashes and salts are longs
whose bits are those of the unsigned numbers that the routers take, as `xxhash64` gives them.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from penstock.routing import Grid, JoinSpread
from penstock.runtime.route_column import literal_array, route_column

__all__ = ["grid_left_column", "grid_right_column", "spread_left_column", "spread_right_column"]

_ARRAY = "array<int>"


def grid_left_column(hashes: Column, grid: Grid) -> Column:
    """The channels of left rows of a Cartesian product: all of the column that the hash falls into."""
    least, more = divmod(grid.channels, grid.columns)
    part = _scaled(hashes, F.lit(grid.channels))
    tall = more * (least + 1)
    low = part >= tall
    height = F.when(low, F.lit(least)).otherwise(F.lit(least + 1))
    first = part - F.pmod(part - F.when(low, F.lit(tall)).otherwise(F.lit(0)), height)
    return F.sequence(first, first + height - 1).cast(_ARRAY)


def grid_right_column(hashes: Column, grid: Grid) -> Column:
    """The channels of right rows of a Cartesian product: one of every column, which are evenly apart."""
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
    """The channels of left rows of an equi-join: one, or those of a column of the key's grid."""
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
    """Into which of so many equal parts of all 64-bit numbers each one falls."""
    return F.shiftright(F.shiftrightunsigned(numbers, 32) * sizes, 32)
