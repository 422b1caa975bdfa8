"""An expression in four places of a query: before a stage, behind a window, behind a join, in a condition."""

import datetime as dt

import pyarrow as pa

import penstock as ps
from functions.values import TYPES
from penstock.expressions.types import arrow_type

TIME = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


class Values:
    """The table of values as streams: one row of each number, half of the columns on each side of a join."""

    def __init__(self, table):
        rows = table.num_rows
        self.table = table.append_column("row", pa.array(range(rows), pa.int64())).append_column(
            "time", pa.array([TIME] * rows, pa.timestamp("us", "UTC"))
        )
        self.left = [name for name in TYPES if name.endswith("_0")]
        self.right = [name for name in TYPES if not name.endswith("_0")]

    def stream(self, name, columns, table=None):
        """A stream of some columns, with their rows in one epoch."""
        table = (self.table if table is None else table).select(["time", "row", *columns])
        return ps.stream(name, table.schema, "time", source=ps.rows([table]))

    def prefix(self, columns):
        """The expressions before any stage."""
        return self.stream("given", list(TYPES)).select("row", **columns)

    def window(self, columns):
        """The expressions over the results of a window that passes every column."""
        given = self.stream("given", list(TYPES))
        passed = {name: ps.first(name) for name in TYPES}
        return given.group_by("row").window("1 minute").agg(**passed).select("row", **columns)

    def join(self, columns):
        """The expressions over the pairs of a join."""
        return self._joined().select("row", **columns)

    def condition(self, text, expected):
        """The pairs of a join for which the condition is true; it may read expected values, on the right."""
        table = self.table
        for name, values in expected.items():
            table = table.append_column(name, values)
        right = self.stream("right", [*self.right, *expected], table)
        left = self.stream("left", self.left)
        return left.join(right, "row", within="1 second", condition=text).select("row")

    def _joined(self):
        left, right = self.stream("left", self.left), self.stream("right", self.right)
        return left.join(right, "row", within="1 second")


def collected(relation, spark):
    """The rows of a relation in the order of their numbers."""
    sink = ps.memory()
    relation.start(sink, session=spark, channels=1).wait()
    return sink.table().sort_by("row")


def as_column(values, kind):
    """Listed values of a type as a column."""
    wanted = arrow_type(kind)
    plain = (
        pa.int64() if pa.types.is_timestamp(wanted) else pa.int32() if pa.types.is_date(wanted) else wanted
    )
    return pa.array(values, plain).cast(wanted)
