"""Every sink that keeps results, and how to read what it has; the contract suite runs over them."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds

import penstock as ps
from connect.own_sink import SqliteSink


@dataclass(eq=False)
class Numbered:
    """A function for `each` that replaces what it has of a number."""

    tables: dict[int, pa.Table] = field(default_factory=dict)

    def __call__(self, table, number):
        self.tables[number] = table

    def rows(self):
        return [row for table in self.tables.values() for row in table.to_pylist()]


@dataclass(frozen=True)
class SinkCase:
    """`make` gives a sink over a folder, `read` the rows that it has."""

    name: str
    make: Callable[[Path], ps.Sink]
    read: Callable[[Any, Path], list[dict]]


def parquet_rows(_sink, folder):
    files = sorted(folder.glob("out/*.parquet"))
    return ds.dataset([str(each) for each in files]).to_table().to_pylist() if files else []


def delta_rows(_sink, folder):
    return deltalake.DeltaTable(str(folder / "table")).to_pyarrow_table().to_pylist()


def sqlite_rows(_sink, folder):
    with closing(sqlite3.connect(folder / "own.db")) as database:
        return [json.loads(row) for (row,) in database.execute("SELECT row FROM results ORDER BY rowid")]


SINK_CASES = [
    SinkCase("parquet", lambda folder: ps.parquet(folder / "out"), parquet_rows),
    SinkCase("zstd", lambda folder: ps.parquet(folder / "out", compression="zstd"), parquet_rows),
    SinkCase("delta", lambda folder: ps.delta(folder / "table"), delta_rows),
    SinkCase("memory", lambda _: ps.memory(), lambda sink, _: sink.table().to_pylist()),
    SinkCase("each", lambda _: ps.each(Numbered()), lambda sink, _: sink.function.rows()),
    SinkCase("own", lambda folder: SqliteSink(str(folder / "own.db")), sqlite_rows),
]
