# ruff: noqa: A004 -- users write ps.min, ps.max and ps.sum
"""What the user writes: streams, expressions, windows, aggregates, sources and sinks."""

from penstock.query.aggregates import (
    Aggregate,
    ResolvedAggregate,
    avg,
    count,
    count_distinct,
    first,
    last,
    max,
    min,
    quantile,
    resolve,
    stddev,
    sum,
    top_k,
    var,
)
from penstock.query.durations import microseconds, words
from penstock.query.engine import Engine, install, installed
from penstock.query.expressions import Expression, predicate, scalar
from penstock.query.query import WINDOW_END, WINDOW_START, Query
from penstock.query.result_types import result_type
from penstock.query.schema import Column, Schema, quoted
from penstock.query.sinks import (
    ConsoleSink,
    DeltaSink,
    EachSink,
    MemorySink,
    ParquetSink,
    Sink,
    console,
    delta,
    each,
    memory,
    parquet,
)
from penstock.query.sources import DataFrameSource, FilesSource, RowsSource, Source, dataframe, files, rows
from penstock.query.sql import sql
from penstock.query.steps import Select, Step, Where
from penstock.query.stream import Grouped, Relation, Stream, Windowed, stream
from penstock.query.types import arrow_type
from penstock.query.user_aggregates import ArrowAggregate, SqlAggregate, sql_aggregate
from penstock.query.window import Window

__all__ = [
    "WINDOW_END",
    "WINDOW_START",
    "Aggregate",
    "ArrowAggregate",
    "Column",
    "ConsoleSink",
    "DataFrameSource",
    "DeltaSink",
    "EachSink",
    "Engine",
    "Expression",
    "FilesSource",
    "Grouped",
    "MemorySink",
    "ParquetSink",
    "Query",
    "Relation",
    "ResolvedAggregate",
    "RowsSource",
    "Schema",
    "Select",
    "Sink",
    "Source",
    "SqlAggregate",
    "Step",
    "Stream",
    "Where",
    "Window",
    "Windowed",
    "arrow_type",
    "avg",
    "console",
    "count",
    "count_distinct",
    "dataframe",
    "delta",
    "each",
    "files",
    "first",
    "install",
    "installed",
    "last",
    "max",
    "memory",
    "microseconds",
    "min",
    "parquet",
    "predicate",
    "quantile",
    "quoted",
    "resolve",
    "result_type",
    "rows",
    "scalar",
    "sql",
    "sql_aggregate",
    "stddev",
    "stream",
    "sum",
    "top_k",
    "var",
    "words",
]
