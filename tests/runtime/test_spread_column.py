import numpy as np
import pyarrow as pa
import pytest
from penstock.runtime.spark.routes import (
    grid_left_column,
    grid_right_column,
    spread_left_column,
    spread_right_column,
)
from pyspark.sql import functions as F  # noqa: N812

from penstock.routing import Grid, Ring, grid_for, spread_hot_keys

EDGES = np.array([0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1], np.uint64)
RNG = np.random.default_rng(4)
UNIFORM = np.concatenate([EDGES, RNG.integers(0, 2**64, 2_000, dtype=np.uint64)])
KEYS = np.concatenate([EDGES, RNG.integers(0, 2**64, 100, dtype=np.uint64)])
RATES = 1 / np.arange(1, len(KEYS) + 1) ** 1.2


def agrees(spark, column, copies, **inputs):
    """Whether Spark gives the copies that the router gives, row by row and in order."""
    frame = spark.createDataFrame(pa.table({name: each.view(np.int64) for name, each in inputs.items()}))
    rows = frame.select(column.alias("channels"))
    assert rows.schema["channels"].dataType.simpleString() == "array<int>"
    assert "Python" not in rows._jdf.queryExecution().executedPlan().toString()
    found = rows.toArrow()["channels"].combine_chunks()
    np.testing.assert_array_equal(found.values.to_numpy(), copies.channels)
    lengths = found.value_lengths().to_numpy()
    np.testing.assert_array_equal(np.repeat(np.arange(len(lengths)), lengths), copies.rows)


@pytest.mark.parametrize(
    "grid", [Grid(1, 1), grid_for(7), Grid(7, 3), Grid(8, 8), Grid(5, 1), grid_for(64)], ids=str
)
def test_grids_agree_with_numpy(spark, grid):
    agrees(spark, grid_left_column(F.col("hash"), grid), grid.left(UNIFORM), hash=UNIFORM)
    agrees(spark, grid_right_column(F.col("hash"), grid), grid.right(UNIFORM), hash=UNIFORM)


@pytest.mark.parametrize("copied", ["both", "left", "right", "neither"])
@pytest.mark.parametrize("channels", [1, 7])
def test_spread_keys_agree_with_numpy(spark, copied, channels):
    router = spread_hot_keys(KEYS, RATES, RATES, Ring(channels), copied)
    hashes = np.concatenate([np.repeat(KEYS[:20], 30), KEYS, UNIFORM])
    salts = RNG.integers(0, 2**64, len(hashes), dtype=np.uint64)
    salts[: len(EDGES)] = EDGES
    columns = F.col("hash"), F.col("salt")
    agrees(spark, spread_left_column(*columns, router), router.left(hashes, salts), hash=hashes, salt=salts)
    agrees(spark, spread_right_column(*columns, router), router.right(hashes, salts), hash=hashes, salt=salts)
