"""SQL over results inside a channel: DuckDB evaluates it on Arrow.

Conditions and projections of results whose functions are certified need no way back through the JVM.
"""

import atexit
import os
from functools import cache
from typing import Any

import pyarrow as pa

from penstock.errors import BadExpression, BadValue

__all__ = ["check", "constant_type", "cursor", "evaluate"]

_ZONED, _PLAIN = pa.timestamp("us", tz="UTC"), pa.timestamp("us")


def evaluate(sql: str, table: Any, written: str = "") -> Any:
    """The result of a SELECT over `input` as a table; row order is kept.

    DuckDB needs an extension for times with a zone, so they pass through without a zone, in UTC. If a value
    cannot be evaluated, the error shows what the user has `written`.
    """
    import duckdb  # noqa: PLC0415 -- 60 ms that a query without SQL over results does not need

    zoned = any(field.type == _ZONED for field in table.schema)
    connection = cursor()
    try:
        connection.register("input", _retyped(table, _ZONED, _PLAIN) if zoned else table)
        found = connection.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        if not written or isinstance(error, (duckdb.OutOfMemoryException, duckdb.IOException)):
            raise
        told = " ".join(str(error).split())
        raise BadValue(
            f"{written}: {told}; leave such tuples out with where() before it, or use a function that gives "
            "null for them"
        ) from error
    finally:
        connection.close()
    # If no input column is a time with a zone, no output column is.
    return _retyped(found, _PLAIN, _ZONED) if zoned else found


def _retyped(table: Any, given: Any, wanted: Any) -> Any:
    fields = [field.with_type(wanted) if field.type == given else field for field in table.schema]
    return table.cast(pa.schema(fields))


def check(sql: str, schema: Any, written: str) -> None:
    """Raise BadExpression for a SELECT over `input` that DuckDB cannot bind, showing what the user wrote."""
    import duckdb  # noqa: PLC0415 -- 60 ms that a query without SQL over results does not need

    connection = cursor()
    try:
        connection.register("input", _retyped(schema.empty_table(), _ZONED, _PLAIN))
        connection.sql(sql)
    except duckdb.Error as error:
        raise BadExpression(
            f"{written!r} cannot be evaluated over the result columns {', '.join(schema.names)}: {error}"
        ) from error
    finally:
        connection.close()


@cache
def constant_type(sql: str) -> str | None:
    """The type of an expression without columns; None if it raises.

    >>> constant_type("1 + 1"), constant_type("make_date(2024, 13, 1)")
    ('INTEGER', None)
    """
    import duckdb  # noqa: PLC0415 -- as above

    connection = cursor()
    try:
        found = connection.sql(f"SELECT {sql} AS v")
        found.to_arrow_table()
        return str(found.types[0])
    except duckdb.Error:
        return None
    finally:
        connection.close()


def cursor() -> Any:
    """A connection with its own names, for one thread; close it to release what it registered.

    A process has one DuckDB: to start it takes 15-28 ms, to open a cursor a few microseconds.
    """
    # Not typed: with its types in annotations, DuckDB complains at the end of a process with daemon threads.
    # A forked child must not use what its parent opened.
    return _database(os.getpid()).cursor()


@cache
def _database(process: int) -> Any:  # noqa: ARG001 -- the key of the cache
    import duckdb  # noqa: PLC0415 -- as above

    # What stands twice would be computed first, for all rows: also for those for which a COALESCE does not
    # reach it, and then it raises for them.
    opened = duckdb.connect(config={"threads": 1, "disabled_optimizers": "common_subexpressions"})
    # If the interpreter's exit closed it, DuckDB would report supposed leaks.
    atexit.register(_database.cache_clear)
    return opened
