"""A sink as a user writes it: results in a table of SQLite, exactly once."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass

import penstock as ps
from penstock.connect import Delivery, EpochId, Results, SinkContext


@dataclass(frozen=True)
class SqliteSink(ps.Sink):
    """Rows of a table, as JSON."""

    path: str

    def open(self, context: SinkContext) -> Delivery:
        with closing(sqlite3.connect(self.path)) as database:
            database.execute("CREATE TABLE IF NOT EXISTS results (output TEXT, row TEXT)")
            database.execute("CREATE TABLE IF NOT EXISTS done (output TEXT PRIMARY KEY, version INTEGER)")
        return SqliteDelivery(self.path, context.id)


@dataclass(frozen=True)
class SqliteDelivery(Delivery):
    path: str
    output: str

    def deliver(self, epoch: EpochId, results: Results) -> None:
        # Epochs come from Spark's thread, and SQLite wants a connection for each thread.
        with closing(sqlite3.connect(self.path)) as database, database:
            query = "SELECT version FROM done WHERE output = ?"
            done = database.execute(query, [self.output]).fetchone()
            if done is not None and done[0] >= epoch.version:
                return  # it came before a kill
            for batch in results.batches():
                rows = [(self.output, json.dumps(row, default=str)) for row in batch.to_pylist()]
                database.executemany("INSERT INTO results VALUES (?, ?)", rows)
            # In the same transaction as the rows: both are there, or neither.
            database.execute("REPLACE INTO done VALUES (?, ?)", [self.output, epoch.version])
