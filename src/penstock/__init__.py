# ruff: noqa: A004 -- users write ps.min, ps.max and ps.sum
"""Penstock: elastic, skew-proof stream processing on Apache Spark."""

from penstock import errors
from penstock.query import (
    ArrowAggregate,
    Query,
    Stream,
    avg,
    console,
    count,
    count_distinct,
    dataframe,
    delta,
    each,
    files,
    first,
    install,
    last,
    max,
    memory,
    min,
    parquet,
    quantile,
    rows,
    sql,
    sql_aggregate,
    stddev,
    stream,
    sum,
    top_k,
    var,
)
from penstock.runtime import EpochProgress, Run, SparkEngine

__version__ = "0.1.0"

__all__ = [
    "ArrowAggregate",
    "EpochProgress",
    "Query",
    "Run",
    "Stream",
    "__version__",
    "avg",
    "console",
    "count",
    "count_distinct",
    "dataframe",
    "delta",
    "each",
    "errors",
    "files",
    "first",
    "last",
    "max",
    "memory",
    "min",
    "parquet",
    "quantile",
    "rows",
    "sql",
    "sql_aggregate",
    "stddev",
    "stream",
    "sum",
    "top_k",
    "var",
]

install(SparkEngine())
