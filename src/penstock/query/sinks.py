"""Where the results of a query go: declarations only, the runtime acts on them."""

import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from penstock.errors import BadSink

__all__ = [
    "ConsoleSink",
    "DeltaSink",
    "EachSink",
    "MemorySink",
    "ParquetSink",
    "Sink",
    "console",
    "delta",
    "each",
    "memory",
    "parquet",
]

COMPRESSIONS: Final = ("snappy", "zstd", "gzip", "lz4", "brotli", "none")


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """Parquet files under a path or URI."""

    path: str
    compression: str


@dataclass(frozen=True, slots=True)
class DeltaSink:
    """A Delta table; ``app`` is the name under which its transactions are recorded."""

    path: str
    app: str | None


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    """The terminal, so many rows of each epoch."""

    rows: int


@dataclass(frozen=True, slots=True)
class EachSink:
    """A Python function, called with the results and the number of each epoch."""

    function: Callable[[pa.Table, int], object]


class MemorySink:
    """Results kept in memory; an epoch that is delivered again replaces its former results.

    >>> sink = memory()
    >>> sink.append(0, pa.table({"n": [1]}))
    >>> sink.append(0, pa.table({"n": [1]}))
    >>> sink.table().num_rows
    1
    """

    def __init__(self) -> None:
        self._tables: dict[Hashable, pa.Table] = {}

    def append(self, epoch_key: Hashable, table: pa.Table) -> None:
        """Keep the results of one epoch."""
        self._tables[epoch_key] = table

    def table(self) -> pa.Table:
        """All results so far, in the order in which their epochs first came."""
        tables = list(self._tables.values())
        return pa.concat_tables(tables) if tables else pa.table({})

    def __repr__(self) -> str:
        return f"memory(epochs={len(self._tables)})"


Sink = ParquetSink | DeltaSink | MemorySink | ConsoleSink | EachSink


def parquet(path: str | os.PathLike[str], compression: str = "snappy") -> ParquetSink:
    """Write Parquet files under a path or any URI that pyarrow.fs understands.

    >>> parquet("out", compression="zstd")
    ParquetSink(path='out', compression='zstd')
    """
    if compression.lower() not in COMPRESSIONS:
        raise BadSink(f"no compression {compression!r}; there are {', '.join(COMPRESSIONS)}")
    return ParquetSink(_path(path), compression.lower())


def delta(path: str | os.PathLike[str], app: str | None = None) -> DeltaSink:
    """Append to a Delta table, each epoch in one transaction under the name ``app``."""
    return DeltaSink(_path(path), app)


def memory() -> MemorySink:
    """Keep the results in memory, for tests and notebooks."""
    return MemorySink()


def console(rows: int = 20) -> ConsoleSink:
    """Print the first rows of each epoch's results."""
    if rows < 1:
        raise BadSink(f"rows={rows}; give 1 or more")
    return ConsoleSink(rows)


def each(function: Callable[[pa.Table, int], object]) -> EachSink:
    """Call ``function(table, epoch)`` with the results of each epoch.

    A replayed epoch calls it again with the same table and number: let it be idempotent.
    """
    if not callable(function):
        raise BadSink(f"each() got {function!r}; give a function(table, epoch)")
    return EachSink(function)


def _path(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    if not isinstance(text, str) or not text:
        raise BadSink(f"path {path!r}; give a directory or a URI")
    return text
