"""Formers: channels that form partials of the rows of hot keys, for the channels that keep those keys.

A former has no state. Its rows are dealt out by sub-keys; what it hands on is one partial for each pane and
key of its share, marked with its number and, on the first row, with the processor time that it took. The
marks travel with the rows, so a task that runs twice is counted once.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from penstock.compile import ROWS, WindowPlan
from penstock.runtime.keyed import KEY, Keyed
from penstock.runtime.segments import PANE

__all__ = ["Formed", "Former", "merged_partials"]

_FORMER, _BUSY = "_ps_former", "_ps_busy"


@dataclass(frozen=True)
class Formed:
    """What one former did for one channel: its number, the rows behind its partials, processor seconds."""

    former: int
    rows: int
    seconds: float


@dataclass(frozen=True)
class Former:
    """What Spark ships to the workers: forms the partials of the rows that a channel was dealt."""

    plan: WindowPlan

    @property
    def schema(self) -> Any:
        """Keys, pane and partials as a segment holds them, then the marks."""
        fields = list(_partial_schema(self.plan))
        return pa.schema([*fields, pa.field(_FORMER, pa.int32()), pa.field(_BUSY, pa.float64())])

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The partials of all rows of a partition."""
        began = time.process_time()
        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return
        context = TaskContext.get()
        assert context is not None
        keyed = Keyed(self.plan, [], pa.Table.from_batches(held))
        table = keyed.table(keyed.rows.pane, keyed.rows.key, keyed.rows.lanes)
        busy = np.zeros(table.num_rows)
        busy[0] = time.process_time() - began
        table = table.append_column(_FORMER, pa.array(np.full(len(busy), context.partitionId(), np.int32)))
        yield from table.append_column(_BUSY, pa.array(busy)).cast(self.schema).combine_chunks().to_batches()


def merged_partials(plan: WindowPlan, received: Any) -> tuple[Any, tuple[Formed, ...]]:
    """One partial for each pane and key from those of all formers, and what each former did.

    Merged in the order of the formers, whatever the order in which the exchange brought them, so that a
    replay gives the same bits.
    """
    former = received[_FORMER].to_numpy()
    ordered = received.take(pa.array(np.argsort(former, kind="stable")))
    schema = _partial_schema(plan)
    table = Keyed(plan, [ordered.select(schema.names).cast(schema)]).combined(1)
    rows = np.bincount(former, received[ROWS].to_numpy())
    busy = np.bincount(former, received[_BUSY].to_numpy())
    formed = (Formed(each, int(rows[each]), float(busy[each])) for each in np.flatnonzero(rows).tolist())
    return table, tuple(formed)


def _partial_schema(plan: WindowPlan) -> Any:
    keys = [(KEY.format(place), key.type) for place, key in enumerate(plan.keys)]
    partials = [
        (name, type_)
        for partial in plan.partials
        for name, type_ in zip(partial.columns, partial.kind.types, strict=True)
    ]
    return pa.schema([*keys, (PANE, pa.int64()), *partials])
