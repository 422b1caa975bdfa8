"""Edge values of every type, and expressions evaluated by Spark and by DuckDB for comparison."""

import datetime as dt
import math
from decimal import Decimal
from itertools import product

import pyarrow as pa

from penstock.expressions.duck import evaluate
from penstock.expressions.types import arrow_type
from penstock.functions import translated

UTC = dt.UTC
EDGES = {
    "tinyint": [-128, -7, -1, 0, 1, 2, 3, 127, None],
    "smallint": [-(2**15), -7, 0, 1, 2, 2**15 - 1, None],
    "int": [-(2**31), -100, -7, -3, -1, 0, 1, 2, 3, 5, 20, 256, 2**31 - 1, None],
    "bigint": [-(2**63), -(2**31) - 1, -7, -1, 0, 1, 2, 3, 233, 10**15, 2**63 - 1, None],
    "float": [math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -2.5, 3.25, 1e30, None],
    "double": [math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 0.5, 1.5, -1.5, 2.5, -2.5, 1e300, 99999.999, 9.2e18, None],
    "decimal(10,2)": [Decimal("-99999999.99"), Decimal("-1.50"), Decimal("0.00"), Decimal("0.01"), Decimal("2.50"), None],
    "decimal(5,0)": [Decimal(-99999), Decimal(0), Decimal(7), None],
    "string": ["", "a", "A b", " x ", "héllo", "日本語", "a,b,c", "l", "%", "1", "straße", "ÀÉ", "e\u0301x", "😀y", "a\nb", "İ", "ǅ", "Σς", None],
    "boolean": [True, False, None],
    "date": [dt.date(1, 1, 1), dt.date(1582, 10, 15), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(2024, 1, 31), dt.date(2024, 12, 30), None],
    "timestamp": [
        dt.datetime(1900, 1, 1, 0, 0, 0, 1, UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        dt.datetime(2000, 2, 29, 12, 34, 56, 789000, UTC),
        dt.datetime(2024, 3, 10, 7, 30, 0, 100000, UTC),
        dt.datetime(2024, 12, 30, 23, 59, 59, 999999, UTC),
        None,
    ],
}
EDGES["timestamp_ntz"] = [each and each.replace(tzinfo=None) for each in EDGES["timestamp"]]
MOST_ROWS = 400
MOST_RAISING = 3


def rows_of(kinds, chance, most=MOST_ROWS):
    """Rows of edge values: all combinations, or a sample of them."""
    every = list(product(*(EDGES[kind] for kind in kinds)))
    return every if len(every) <= most else chance.sample(every, most)


def table_of(kinds, rows):
    """Rows as an Arrow table with columns c0, c1, …"""
    names = [f"c{place}" for place in range(len(kinds))]
    columns = [pa.array([row[place] for row in rows], arrow_type(kind)) for place, kind in enumerate(kinds)]
    return pa.table(columns, names=names) if names else pa.table({"none": [0] * len(rows)})


ERROR = "error"


class SparkOracle:
    """Expressions as Spark evaluates them."""

    def __init__(self, session):
        self.session = session

    def values(self, sql, table, raising=()):
        """The type and the values, `ERROR` for rows of which it is known that they raise.

        One job evaluates all other rows together, so if Spark raises for one of them, all are `ERROR`. Rows that
        should raise are evaluated one by one, and only a few of them: a job each takes its time.
        """
        kind = self.session.createDataFrame(table.slice(0, 0)).selectExpr(f"{sql} AS v").schema["v"].dataType
        fine = [place for place in range(table.num_rows) if place not in set(raising)]
        found = dict(zip(fine, self._together(sql, table.take(fine)), strict=True))
        for place in raising[:MOST_RAISING]:
            (found[place],) = self._together(sql, table.slice(place, 1))
        for place in raising[MOST_RAISING:]:
            found[place] = ERROR
        return kind.simpleString(), [found[place] for place in range(table.num_rows)]

    def _together(self, sql, table):
        from pyspark.errors import PySparkException  # noqa: PLC0415

        try:
            frame = self.session.createDataFrame(table).selectExpr(f"{sql} AS v")
            return frame.toArrow()["v"].to_pylist()
        except PySparkException:
            return [ERROR] * table.num_rows


def channel_values(sql, table, kinds):
    """The same in a channel: the type, and the values."""
    found = translated(sql, {f"c{place}": kind for place, kind in enumerate(kinds)})
    return found.type, _channel(found, table)


def _channel(found, table):
    import duckdb  # noqa: PLC0415

    try:
        values = evaluate(f"SELECT {found.sql} AS v FROM input", table)["v"]
        kind = arrow_type(found.type)
        return values.cast(kind if not pa.types.is_timestamp(kind) else values.type).to_pylist()
    except (duckdb.Error, pa.ArrowInvalid):
        if table.num_rows == 1:
            return [ERROR]
        half = table.num_rows // 2
        return _channel(found, table.slice(0, half)) + _channel(found, table.slice(half))


def plain(value):
    """A value for comparison: NaN equals NaN, and the sign of a zero counts."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return value
