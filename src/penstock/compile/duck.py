"""Scalar SQL over results, inside a channel: Spark SQL text evaluated by DuckDB on Arrow.

The text is written in Spark's dialect like all others and translated by sqlglot, so HAVING, the
projection of results and the finish of SQL aggregates need no way back through the JVM.
"""

from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

from penstock.errors import BadExpression

__all__ = ["check", "evaluate", "translate"]


def translate(spark_sql: str) -> str:
    """Spark SQL to DuckDB SQL.

    >>> translate("hi / lo")
    'hi / lo'
    """
    return sqlglot.transpile(spark_sql, read="spark", write="duckdb")[0]


def evaluate(sql: str, table: Any) -> Any:
    """The result of a SELECT over `input` as a table; row order is kept."""
    with duckdb.connect(config={"threads": 1, "TimeZone": "UTC"}) as connection:
        connection.register("input", table)
        return connection.sql(sql).to_arrow_table()


def check(sql: str, schema: Any, written: str) -> Any:
    """The schema that a SELECT over `input` gives, or an error that shows what the user wrote."""
    try:
        return evaluate(sql, pa.Table.from_pylist([], schema=schema)).schema
    except duckdb.Error as error:
        raise BadExpression(
            f"{written!r} cannot be evaluated over the result columns {', '.join(schema.names)}: {error}"
        ) from error
