"""Rows placed by what they cost, in each task of the map side over its own rows ([001] §5).

The hashes come from Spark; the task looks up costs and places all its rows at once, on numpy.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.types import IntegerType, MapType, StructField, StructType

from penstock.operators.exchange import Exchange
from penstock.routing import place_by_cost
from penstock.sketches import MeanCost, ValueCosts

__all__ = ["placed_by_cost"]

_CHANNEL, _SALT = "_ps_channel", "_ps_salt"


def placed_by_cost(rows: DataFrame, exchange: Exchange, costs: ValueCosts, channels: int) -> DataFrame:
    """The rows in partitions that should take equally long; the column of channels comes last.

    Rows of equal cost are told apart by a hash of their content, so that a task that runs again, and gets its
    rows in another order, sends the same to each channel.
    """
    salted = [F.col(f"`{each.name}`") for each in rows.schema if not _holds_map(each.dataType)]
    frame = rows.withColumn(_SALT, F.xxhash64(*salted))
    schema = StructType([*rows.schema.fields, StructField(_CHANNEL, IntegerType())])
    placed = frame.mapInArrow(_Placing(exchange.value, costs.means, channels), schema)
    return placed.repartitionById(channels, F.col(_CHANNEL))


def _holds_map(type_: Any) -> bool:
    """Whether Spark can hash no value of the type."""
    if isinstance(type_, MapType):
        return True
    inner = [each.dataType for each in type_.fields] if isinstance(type_, StructType) else []
    inner += [type_.elementType] if hasattr(type_, "elementType") else []
    return any(map(_holds_map, inner))


@dataclass(frozen=True)
class _Placing:
    """The callable that Spark ships to the workers."""

    value: str
    costs: MeanCost
    channels: int

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return
        context = TaskContext.get()
        assert context is not None
        table = pa.Table.from_batches(held)
        hashes, salts = (table[name].to_numpy().view(np.uint64) for name in (self.value, _SALT))
        placed = place_by_cost(hashes, salts, self.costs, self.channels, context.partitionId())
        table = table.drop_columns([_SALT]).append_column(_CHANNEL, pa.array(placed))
        yield from table.to_batches()
