"""What a batch engine gives over the accepted tuples, and which tuples are accepted.

Written apart from Penstock on purpose: DuckDB expands every tuple into its windows, and lateness
is worked out tuple by tuple from its definition: a tuple counts in a window that was not closed
before the tuple's epoch, and is late if it has windows and all of them were.
"""

import atexit
import functools
from dataclasses import dataclass

import duckdb
import pyarrow as pa


@dataclass(frozen=True)
class Shape:
    size: int
    slide: int
    offset: int = 0

    def last_closed_end(self, frontier: int) -> int:
        """The largest window end at or below the frontier."""
        return (frontier - self.size - self.offset) // self.slide * self.slide + self.size + self.offset

    def late_below(self, closed: int) -> int:
        """Below it all windows have ended at `closed`, the end of a window, or before."""
        return min(closed, closed - self.size + self.slide)


def split_late(
    shape: Shape, delay: int, epochs: list[list[dict]], time="time"
) -> tuple[list[dict], list[dict]]:
    """Accepted and late tuples; times are microseconds, tuples without a time are neither.

    Accepted tuples say in `closed` up to where windows were closed before they came.
    """
    accepted, late, latest, closed = [], [], None, None
    for epoch in epochs:
        held = [row for row in epoch if row[time] is not None]
        for row in held:
            missed = closed is not None and row[time] < shape.late_below(closed)
            (late if missed else accepted).append(row | {"closed": closed})
        for row in held:
            latest = row[time] if latest is None else max(latest, row[time])
        if latest is not None:
            end = shape.last_closed_end(latest - delay)
            closed = end if closed is None else max(closed, end)
    return accepted, late


@functools.cache
def _engine() -> duckdb.DuckDBPyConnection:
    """One for all calls, each with a cursor of its own: to open one takes 12 ms."""
    engine = duckdb.connect(config={"threads": 1})
    engine.execute("CREATE MACRO floor_div(a, b) AS ((a - ((a % b) + b) % b) // b)")
    return engine.execute("CREATE MACRO ceil_div(a, b) AS (-floor_div(-a, b))")


# An open connection at the end of the process is reported as a leak.
atexit.register(_engine.cache_clear)


def windows(
    shape: Shape, table: pa.Table, keys: list[str], aggregates: dict[str, str], time="time"
) -> pa.Table:
    """One row per window and key; `time` is a bigint of microseconds.

    With a column `closed`, a tuple is in those of its windows alone that end after it.
    """
    still_open = (
        f"closed IS NULL OR start + {shape.size} > closed" if "closed" in table.column_names else "true"
    )
    named = ", ".join(f'"{key}"' for key in keys)
    chosen = ", ".join(f"{sql} AS {name}" for name, sql in aggregates.items())
    first = f"ceil_div({time} - {shape.offset} - {shape.size} + 1, {shape.slide})"
    last = f"floor_div({time} - {shape.offset}, {shape.slide})"
    with _engine().cursor() as connection:
        connection.register("input", table)
        return connection.sql(
            f"""
            WITH copies AS (
                SELECT *, unnest(generate_series({first}, {last})) * {shape.slide} + {shape.offset} AS start
                FROM (SELECT * FROM input ORDER BY {time})
            )
            SELECT start AS window_start, start + {shape.size} AS window_end,
                   {named + "," if keys else ""} {chosen}
            FROM copies WHERE {still_open} GROUP BY start{", " + named if keys else ""}
            """
        ).to_arrow_table()


def fetched(sql: str) -> list[tuple]:
    """The rows of a statement, on a connection of its own."""
    with duckdb.connect() as connection:
        return connection.sql(sql).fetchall()
