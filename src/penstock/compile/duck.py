"""Scalar SQL over results, inside a channel: Spark SQL text evaluated by DuckDB on Arrow.

The text is written in Spark's dialect like all others and translated by sqlglot, so HAVING, the
projection of results and the finish of SQL aggregates need no way back through the JVM.
"""

from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

from penstock.errors import BadExpression
from penstock.joins.engine import cursor

__all__ = ["check", "evaluate", "translate"]

_ZONED, _PLAIN = pa.timestamp("us", tz="UTC"), pa.timestamp("us")


def translate(spark_sql: str) -> str:
    """Spark SQL to DuckDB SQL.

    >>> translate("`hi` - `lo`")
    '"hi" - "lo"'
    """
    return sqlglot.transpile(spark_sql, read="spark", write="duckdb")[0]


def evaluate(sql: str, table: Any) -> Any:
    """The result of a SELECT over `input` as a table; row order is kept.

    DuckDB needs an extension for times with a zone, so they pass through without one, in UTC.
    """
    zoned = any(field.type == _ZONED for field in table.schema)
    connection = cursor()
    try:
        connection.register("input", _retyped(table, _ZONED, _PLAIN))
        found = connection.sql(sql).to_arrow_table()
    finally:
        connection.close()
    # Without a time with a zone in what comes in, none comes out.
    return _retyped(found, _PLAIN, _ZONED) if zoned else found


def _retyped(table: Any, given: Any, wanted: Any) -> Any:
    fields = [field.with_type(wanted) if field.type == given else field for field in table.schema]
    return table.cast(pa.schema(fields))


def check(sql: str, schema: Any, written: str) -> Any:
    """The schema that a SELECT over `input` gives, or an error that shows what the user wrote."""
    try:
        return evaluate(sql, pa.Table.from_pylist([], schema=schema)).schema
    except duckdb.Error as error:
        raise BadExpression(
            f"{written!r} cannot be evaluated over the result columns {', '.join(schema.names)}: {error}"
        ) from error
