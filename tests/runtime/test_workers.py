"""Spark's Python workers: where they come from, and what they need not import."""

import os
import sys
from pathlib import Path

import pyarrow as pa


def loaded(batches):
    """What this worker has loaded before its first task, and the command that it was forked from."""
    at_first = [name for name in ("duckdb", "numpy", "penstock.operators", "pyarrow") if name in sys.modules]
    for _ in batches:
        pass
    command = Path(f"/proc/{os.getppid()}/cmdline").read_text().split("\0")
    yield pa.RecordBatch.from_pydict({"at_first": [at_first], "command": [command]})


def test_a_worker_is_forked_from_a_process_that_has_loaded_what_it_needs(spark):
    one = spark.range(0, 1, 1, 1)
    (row,) = one.mapInArrow(loaded, "at_first array<string>, command array<string>").collect()
    assert row.at_first == ["duckdb", "numpy", "penstock.operators", "pyarrow"]
    assert row.command[1:3] == ["-m", "penstock.runtime.spark.daemon"]
