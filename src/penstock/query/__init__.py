# ruff: noqa: A004 -- users write ps.min, ps.max and ps.sum
"""What the user writes: streams, expressions, windows, aggregates, sources and sinks."""

from penstock.expressions.durations import microseconds, words
from penstock.expressions.pairs import PairCondition
from penstock.expressions.scalar import Expression, predicate, scalar
from penstock.expressions.schema import Column, Schema, quoted
from penstock.expressions.types import arrow_type
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
from penstock.query.aggregation import WINDOW_END, WINDOW_START, Aggregation
from penstock.query.engine import Engine, install, installed
from penstock.query.joining import Join, JoinKey, common_type
from penstock.query.processing import Process
from penstock.query.query import MOST_MOVED, Query, outputs
from penstock.query.relation import Derived, Grouped, Operator, Relation, Union, Windowed
from penstock.query.result_types import result_type
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
from penstock.query.sources import (
    DataFrameSource,
    FilesSource,
    GatesSource,
    RowsSource,
    Source,
    dataframe,
    files,
    gates,
    rows,
)
from penstock.query.sql import sql
from penstock.query.steps import Branch, Map, Select, Step, Where
from penstock.query.stream import Stream, stream
from penstock.query.user_aggregates import ArrowAggregate, SqlAggregate, sql_aggregate
from penstock.query.window import Window

__all__ = [
    "MOST_MOVED",
    "WINDOW_END",
    "WINDOW_START",
    "Aggregate",
    "Aggregation",
    "ArrowAggregate",
    "Branch",
    "Column",
    "ConsoleSink",
    "DataFrameSource",
    "DeltaSink",
    "Derived",
    "EachSink",
    "Engine",
    "Expression",
    "FilesSource",
    "GatesSource",
    "Grouped",
    "Join",
    "JoinKey",
    "Map",
    "MemorySink",
    "Operator",
    "PairCondition",
    "ParquetSink",
    "Process",
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
    "Union",
    "Where",
    "Window",
    "Windowed",
    "arrow_type",
    "avg",
    "common_type",
    "console",
    "count",
    "count_distinct",
    "dataframe",
    "delta",
    "each",
    "files",
    "first",
    "gates",
    "install",
    "installed",
    "last",
    "max",
    "memory",
    "microseconds",
    "min",
    "outputs",
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
