"""Call records and plain integers, the two schemas of the published runs ([002] §IV.B and §IV.C)."""

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["CALLERS", "DISTRICTS", "call_records", "integers"]

CALLERS = 100_000
DISTRICTS = 20_000


def call_records(rng: np.random.Generator, rows: int, start: int, span: int) -> Any:
    """Calls whose times, in microseconds, are spread evenly from `start` over `span`.

    >>> call_records(np.random.default_rng(1), 3, start=10, span=30)["time"].to_pylist()
    [10, 20, 30]
    """
    time = start + np.arange(rows, dtype=np.int64) * span // max(rows, 1)
    begin = time - rng.integers(0, 600_000_000, rows)
    return pa.table(
        {
            "time": time,
            "caller": rng.integers(0, CALLERS, rows),
            "callee": rng.integers(0, CALLERS, rows),
            "begin": begin,
            "duration": rng.integers(1, 3_600, rows),
            "district": rng.integers(0, DISTRICTS, rows),
            "x": rng.random(rows),
            "y": rng.random(rows),
        }
    )


def integers(rng: np.random.Generator, rows: int, start: int, span: int) -> Any:
    """The same times with one integer each."""
    time = start + np.arange(rows, dtype=np.int64) * span // max(rows, 1)
    return pa.table({"time": time, "value": rng.integers(0, CALLERS, rows)})
