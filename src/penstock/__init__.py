# ruff: noqa: A004 -- users write ps.min, ps.max and ps.sum
"""Penstock: elastic, skew-proof stream processing on Apache Spark."""

from typing import TYPE_CHECKING, Any

from penstock import errors
from penstock.keyed import NO_TIMER, Block, Outcome, Processor, Visit
from penstock.query import (
    ArrowAggregate,
    Query,
    Relation,
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
    gates,
    install,
    last,
    max,
    memory,
    min,
    outputs,
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
from penstock.runtime import (
    ChannelLoad,
    Decision,
    EpochProgress,
    Observation,
    Rescale,
    Rescaled,
    Run,
    SparkEngine,
    StageChannels,
    StageProgress,
    TrackedKey,
    rebalance_when,
)

if TYPE_CHECKING:
    from penstock.ingest import TLS, AsyncClient, Client, Connection, Directory

__version__ = "0.1.0"

__all__ = [
    "NO_TIMER",
    "TLS",
    "ArrowAggregate",
    "AsyncClient",
    "Block",
    "ChannelLoad",
    "Client",
    "Connection",
    "Decision",
    "Directory",
    "EpochProgress",
    "Observation",
    "Outcome",
    "Processor",
    "Query",
    "Relation",
    "Rescale",
    "Rescaled",
    "Run",
    "StageChannels",
    "StageProgress",
    "Stream",
    "TrackedKey",
    "Visit",
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
    "gates",
    "last",
    "max",
    "memory",
    "min",
    "outputs",
    "parquet",
    "quantile",
    "rebalance_when",
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


def __getattr__(name: str) -> Any:
    """The classes of clients, imported when first used: queries and their workers have no need of Flight."""
    if name in {"AsyncClient", "Client", "Connection", "Directory", "TLS"}:
        from penstock import ingest  # noqa: PLC0415 -- queries have no need of Flight

        return getattr(ingest, name)
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
