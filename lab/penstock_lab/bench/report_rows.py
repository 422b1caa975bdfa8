"""Rows of the kind that vehicles report, as record batches and as the fields of Redis entries."""

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["FIRST_US", "SCHEMA", "entries", "report_rows"]

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", tz="UTC")),
        ("lon", pa.float64()),
        ("lat", pa.float64()),
        ("speed", pa.float64()),
        ("kind", pa.string()),
    ]
)
_KINDS = np.array(["traffic", "parking", "accident"])
FIRST_US = 1_700_000_000_000_000
"""The event time of the first report."""


def report_rows(rows: int, seed: int) -> pa.RecordBatch:
    """`rows` reports, a millisecond apart."""
    rng = np.random.default_rng(seed)
    return pa.record_batch(
        [
            pa.array(FIRST_US + np.arange(rows) * 1000, SCHEMA.field("time").type),
            pa.array(13 + rng.random(rows)),
            pa.array(52 + rng.random(rows)),
            pa.array(rng.random(rows) * 130),
            pa.array(_KINDS[rng.integers(0, len(_KINDS), rows)]),
        ],
        schema=SCHEMA,
    )


def entries(batch: pa.RecordBatch) -> list[dict[Any, Any]]:
    """The same rows as Redis takes them, one entry for each."""
    plain = batch.set_column(0, "time", batch.column("time").cast(pa.int64()))
    found: list[dict[Any, Any]] = plain.to_pylist()
    return found
