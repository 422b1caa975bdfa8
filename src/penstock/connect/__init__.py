"""Sources of tuples and sinks of results: `Source`, `Sink`, and one file for each kind."""

from penstock.connect.results import EpochId, Output, ResultFile, ResultFormat, Results
from penstock.connect.sink import Delivery, Sink, SinkContext
from penstock.connect.sinks import (
    SINKS,
    ConsoleSink,
    DeltaSink,
    EachSink,
    MemorySink,
    ParquetSink,
    console,
    delta,
    each,
    memory,
    parquet,
)
from penstock.connect.source import CORRUPT, Source, SourceContext
from penstock.connect.sources import (
    SOURCES,
    DataFrameSource,
    FilesSource,
    GatesSource,
    RowsSource,
    dataframe,
    files,
    gates,
    rows,
)

__all__ = [
    "CORRUPT",
    "SINKS",
    "SOURCES",
    "ConsoleSink",
    "DataFrameSource",
    "Delivery",
    "DeltaSink",
    "EachSink",
    "EpochId",
    "FilesSource",
    "GatesSource",
    "MemorySink",
    "Output",
    "ParquetSink",
    "ResultFile",
    "ResultFormat",
    "Results",
    "RowsSource",
    "Sink",
    "SinkContext",
    "Source",
    "SourceContext",
    "console",
    "dataframe",
    "delta",
    "each",
    "files",
    "gates",
    "memory",
    "parquet",
    "rows",
]
