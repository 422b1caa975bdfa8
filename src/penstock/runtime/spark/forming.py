"""Partials of hot keys, formed in several channels for the one that keeps the key.

A forming channel has no state. Its rows are partitioned by sub-keys; its output is one partial for each
bucket and key of its share, marked with its number and, on the first row, with its processor time. The marks
travel with the rows, so a task that runs twice is counted once.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.operators.kernel import Kernel

__all__ = ["Formed", "formed", "merged"]

_FORMER, _BUSY = "_ps_former", "_ps_busy"


@dataclass(frozen=True)
class Formed:
    """What one channel formed for another: its number, the rows behind its partials, processor seconds."""

    former: int
    rows: int
    seconds: float


def formed(kernel: Kernel, rows: DataFrame) -> DataFrame:
    """The partials of a channel's rows, with marks."""
    schema = kernel.partials
    marked = pa.schema([*schema, pa.field(_FORMER, pa.int32()), pa.field(_BUSY, pa.float64())])
    return rows.mapInArrow(_Former(kernel, marked), from_arrow_schema(marked))


def merged(kernel: Kernel, received: Any, counts: Any) -> tuple[Any, tuple[Formed, ...]]:
    """Merge the partials of all forming channels per bucket and key, and report what each channel did.

    Of a partial that several channels get, only one `counts`.

    They are merged in the order of the forming channels, whatever the order in which the exchange brought
    them, so that a replay gives the same bits.
    """
    (exchange,) = kernel.exchanges
    assert exchange.combine is not None
    former = received[_FORMER].to_numpy()
    ordered = received.take(pa.array(np.argsort(former, kind="stable")))
    schema = kernel.partials
    table = kernel.merge(ordered.select(schema.names).cast(schema))
    rows = np.bincount(former, received[exchange.combine.weight].to_numpy() * counts)
    busy = np.bincount(former, received[_BUSY].to_numpy() * counts)
    done = (Formed(each, int(rows[each]), float(busy[each])) for each in np.flatnonzero(rows).tolist())
    return table, tuple(done)


@dataclass(frozen=True)
class _Former:
    """The callable that Spark ships to the workers."""

    kernel: Kernel
    schema: Any

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        began = time.process_time()
        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return
        context = TaskContext.get()
        assert context is not None
        table = self.kernel.form(pa.Table.from_batches(held))
        busy = np.zeros(table.num_rows)
        busy[0] = time.process_time() - began
        table = table.append_column(_FORMER, pa.array(np.full(len(busy), context.partitionId(), np.int32)))
        yield from table.append_column(_BUSY, pa.array(busy)).cast(self.schema).combine_chunks().to_batches()
