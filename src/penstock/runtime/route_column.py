"""A router as a native Spark expression: exactly what `route` gives, for every 64-bit hash, without Python.

The hash is `xxhash64` of the key columns, a signed long whose bits are those of the unsigned hash that
`route` takes. The arrays stand in the plan as literals, so a route is two shifts and at most three array
accesses in generated code.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.classic import column as classic

from penstock.routing.arrays import CHANNEL_BITS, RouteArrays

__all__ = ["literal_array", "route_column"]


def literal_array(values: NDArray[np.integer]) -> Column:
    """One array literal of longs; needs a running session.

    The values go to the JVM as one buffer: `lit` of a list or an array would call it for each element.
    An expression that makes the array, such as `from_json`, is not always folded before it is evaluated.
    """
    context: Any = SparkContext._active_spark_context  # noqa: SLF001 -- as `lit` itself does
    assert context is not None, "no Spark session runs; start one before routing with it"
    gateway, jvm = context._gateway, context._jvm  # noqa: SLF001 -- as `lit` itself does
    longs = gateway.new_array(jvm.long, len(values))
    jvm.java.nio.ByteBuffer.wrap(values.astype(">i8").tobytes()).asLongBuffer().get(longs)
    return classic.Column(jvm.org.apache.spark.sql.functions.lit(longs))


def route_column(hashes: Column, arrays: RouteArrays) -> Column:
    """The channel (an int) of each hash (a long, as `xxhash64` gives it)."""
    ring = literal_array(arrays.ring)
    if len(arrays.ring) == 1:
        entry = F.get(ring, F.lit(0))
    else:
        entry = F.get(ring, F.shiftrightunsigned(hashes, arrays.shift).cast("int"))
    channel = entry.bitwiseAND((1 << CHANNEL_BITS) - 1)
    if arrays.slots:
        table = literal_array(arrays.table)
        folded = hashes.bitwiseXOR(F.shiftrightunsigned(hashes, arrays.fold))
        displacement = F.shiftright(entry, CHANNEL_BITS)
        slot = folded.bitwiseAND(arrays.slots - 1).bitwiseXOR(displacement).cast("int")
        channel = F.when(F.get(table, slot) == hashes, F.get(table, slot + arrays.slots)).otherwise(channel)
    return channel.cast("int")
