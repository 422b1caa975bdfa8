"""The sinks of Penstock. A new sink is one file here and its lines in this list."""

from penstock.connect.sink import Sink
from penstock.connect.sinks.console import ConsoleSink, console
from penstock.connect.sinks.delta import DeltaSink, delta
from penstock.connect.sinks.each import EachSink, each
from penstock.connect.sinks.memory import MemorySink, memory
from penstock.connect.sinks.parquet import ParquetSink, delivered, parquet

__all__ = [
    "SINKS",
    "ConsoleSink",
    "DeltaSink",
    "EachSink",
    "MemorySink",
    "ParquetSink",
    "console",
    "delivered",
    "delta",
    "each",
    "memory",
    "parquet",
]

SINKS: tuple[type[Sink], ...] = (ConsoleSink, DeltaSink, EachSink, MemorySink, ParquetSink)
"""Every sink; the contract suite runs over them."""
