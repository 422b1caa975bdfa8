import numpy as np
import pyarrow as pa
import pytest
from penstock.runtime.spark.routes import route_column
from pyspark.sql import functions as F  # noqa: N812

from penstock.routing import HashPair, Ring
from routing.routers import HOT, KEYED

EDGES = np.array([0, 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1], np.uint64)
HASHES = np.concatenate([EDGES, HOT, np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)])


def routed_by_spark(spark, router, hashes):
    frame = spark.createDataFrame(pa.table({"hash": hashes.view(np.int64)}))
    routed = frame.select(route_column(F.col("hash"), router.arrays).alias("channel"))
    assert routed.schema["channel"].dataType.simpleString() == "int"
    return routed.toArrow()["channel"].to_numpy()


@pytest.mark.parametrize("name", KEYED)
@pytest.mark.parametrize("channels", [1, 7])
def test_spark_routes_as_numpy_does(spark, name, channels):
    router = KEYED[name](channels)
    np.testing.assert_array_equal(routed_by_spark(spark, router, HASHES), router.route(HASHES))


def test_edges_in_the_table_and_a_ring_of_one_cell(spark):
    for ring in (Ring(9), Ring(1, buckets=1)):
        targets = (np.arange(len(EDGES)) % ring.channels).astype(np.int32)
        router = HashPair(EDGES, targets, ring)
        np.testing.assert_array_equal(routed_by_spark(spark, router, EDGES), targets)
        np.testing.assert_array_equal(routed_by_spark(spark, router, HASHES), router.route(HASHES))


def test_a_large_table_routes_keys_by_their_xxhash64(spark):
    rows = spark.range(5000).select(F.xxhash64("id").alias("hash"))
    keys = rows.toArrow()["hash"].to_numpy().view(np.uint64)
    targets = np.random.default_rng(3).integers(0, 50, 4096, dtype=np.int32)
    router = HashPair(keys[:4096], targets, Ring(50))
    routed = rows.select(route_column(F.col("hash"), router.arrays).alias("channel"))
    np.testing.assert_array_equal(routed.toArrow()["channel"].to_numpy(), router.route(keys))
