"""One DuckDB for each process: to start one takes 15-28 ms, a cursor on it a few microseconds."""

import atexit
import os
from functools import cache
from typing import Any

import duckdb

__all__ = ["cursor"]


def cursor() -> Any:
    """A connection with names of its own, for one thread; close it to let go of what it registered."""
    # Not typed: with its types in annotations, DuckDB complains at the end of a process with daemon threads.
    # A child must not use what its parent opened.
    return _database(os.getpid()).cursor()


@cache
def _database(process: int) -> Any:  # noqa: ARG001 -- the key of the cache
    opened = duckdb.connect(config={"threads": 1})
    # Left to the interpreter's end, DuckDB complains of what it thinks has leaked.
    atexit.register(_database.cache_clear)
    return opened
