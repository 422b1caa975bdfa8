"""Spark SQL for DuckDB as sqlglot writes it: near enough for oracles over plain values only."""

import sqlglot


def translate(spark_sql):
    """The text in DuckDB's dialect."""
    return sqlglot.transpile(spark_sql, read="spark", write="duckdb")[0]
