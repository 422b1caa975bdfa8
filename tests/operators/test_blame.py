"""Errors of the machine under a function of the user: they end the call, and no row is set aside for them."""

import errno
import gzip
import sqlite3
import subprocess
from concurrent.futures.process import BrokenProcessPool

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as ps
from operators.contract import KernelRun
from penstock.connect.results import ResultFormat
from penstock.errors import BadProcess, MachineFault
from penstock.operators.blame import is_row_fault
from penstock.runtime.refusals import Refusals
from penstock.state import Location

MACHINE = [
    MemoryError("no room"),
    pa.ArrowMemoryError("malloc of size 64 failed"),
    np._core._exceptions._ArrayMemoryError((1 << 60,), np.dtype("f8")),
    OSError(errno.ENOSPC, "No space left on device"),
    OSError("no number"),
    pa.ArrowIOError("disk"),
    FileNotFoundError(errno.ENOENT, "No such file"),
    PermissionError(errno.EACCES, "Permission denied"),
    TimeoutError("too slow"),
    ConnectionResetError(errno.ECONNRESET, "reset"),
    InterruptedError(errno.EINTR, "Interrupted"),
    BlockingIOError(errno.EAGAIN, "again"),
    ModuleNotFoundError("No module named 'model'"),
    SystemError("returned NULL"),
    subprocess.TimeoutExpired("convert", 5),
    BrokenProcessPool("a process was killed"),
    pa.lib.ArrowCancelled("interrupted"),
    duckdb.OutOfMemoryException("Out of Memory Error"),
    duckdb.IOException("IO Error"),
    duckdb.InterruptException("INTERRUPT"),
    sqlite3.OperationalError("database is locked"),
    ExceptionGroup("two", [ValueError("a row"), MemoryError()]),
    KeyboardInterrupt(),
    SystemExit(1),
    BadProcess("an error of Penstock"),
]
ROW = [
    ValueError("not a number"),
    ZeroDivisionError(),
    KeyError("k"),
    TypeError("None"),
    RecursionError("maximum recursion depth exceeded"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    OverflowError("timestamp out of range for platform time_t"),
    OSError(errno.EOVERFLOW, "Value too large for defined data type"),
    gzip.BadGzipFile("Not a gzipped file"),
    pa.ArrowInvalid("Failed to parse"),
    duckdb.ConversionException("Conversion Error"),
    ExceptionGroup("two", [ValueError("a row"), KeyError("k")]),
    RuntimeError("anything"),
]


@pytest.mark.parametrize("error", MACHINE, ids=repr)
def test_errors_of_the_machine(error):
    assert not is_row_fault(error)


@pytest.mark.parametrize("error", ROW, ids=repr)
def test_errors_of_a_row(error):
    assert is_row_fault(error)


# Each way in which a function of the user is called.

STREAM = ps.stream("t", "time timestamp, k bigint, v bigint", time="time")
ROWS = [{"time": place, "k": place % 2, "v": place} for place in range(6)]


class Failing:
    """Raises the error at the third call, when it is asked about single rows or keys already."""

    def __init__(self, error):
        self.error, self.calls = error, 0

    def fail(self):
        self.calls += 1
        raise ValueError("a row") if self.calls < 3 else self.error

    def map(self, batch):
        if batch.num_rows:
            self.fail()
        return batch.select(["v"])

    def visit(self, key, time, row, state):
        del key, time, row, state
        self.fail()

    def window(self, rows):
        del rows
        self.fail()


RELATIONS = {
    "map": lambda failing: STREAM.map(failing.map, "v bigint", channels=True),
    "map by cost": lambda failing: STREAM.map(failing.map, "v bigint", by="k", channels=True),
    "process": lambda failing: STREAM.group_by("k").process(
        failing.visit, state="n bigint", result="n bigint"
    ),
    "windows": lambda failing: STREAM.window("1 us").apply(failing.window, "n bigint"),
    "sessions": lambda failing: STREAM.group_by("v").session("1 us").apply(failing.window, "n bigint"),
}


def refused(relation, folder):
    """The reasons of the rows that are set aside in a run."""
    aside = Location(f"{folder}/rejects")
    aside.make()
    run = KernelRun(relation, folder, refusals=Refusals(ResultFormat(aside, "parquet"), 100))
    try:
        run.run([[ROWS]], 0)
    finally:
        assert not run.results
    tables = [pq.read_table(f"{folder}/rejects/{name}") for name in aside.names()]
    return [reason for table in tables for reason in table["reason"].to_pylist()]


@pytest.mark.parametrize("name", RELATIONS)
def test_no_row_is_refused_for_an_error_of_the_machine(name, tmp_path):
    with pytest.raises(MachineFault, match="MemoryError: no room; that is no row's fault"):
        refused(RELATIONS[name](Failing(MemoryError("no room"))), tmp_path)
    assert not list((tmp_path / "rejects").iterdir())


@pytest.mark.parametrize("name", RELATIONS)
def test_every_row_is_refused_for_an_error_of_rows(name, tmp_path):
    assert len(refused(RELATIONS[name](Failing(KeyError("k"))), tmp_path)) == len(ROWS)


def test_without_setting_aside_the_machine_is_named_too():
    def full(batch):
        raise OSError(errno.ENOSPC, "No space left on device")

    step = STREAM.map(full, "v bigint").operator
    with pytest.raises(MachineFault, match=r"map\(full\) raised OSError: \[Errno 28\] No space left"):
        step.call(pa.table({"time": pa.array([0], pa.timestamp("us", "UTC")), "k": [0], "v": [0]}))
