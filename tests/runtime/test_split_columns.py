import numpy as np
import pandas as pd
import pytest
from penstock.runtime.spark.routes import plain_pane_column, rate_pane_column, sub_key_column
from pyspark.sql import functions as F  # noqa: N812

from penstock.routing import PaneHistory, PlainPanes, Ring, SubKeys, plan_panes, split_hot_keys, split_panes

RNG = np.random.default_rng(11)
HOT = np.concatenate(
    [np.array([0, 2**63, 2**64 - 1], np.uint64), RNG.integers(0, 2**64, 60, dtype=np.uint64)]
)
SIZES = np.where(RNG.random(60) < 0.2, 5_000, 1_000)


def evaluated(spark, column, **inputs):
    """The channels that Spark gives; `sequence` and the like are columns of the same rows."""
    frame = spark.createDataFrame(pd.DataFrame(inputs))
    return frame.select(column.alias("channel")).toPandas()["channel"].to_numpy()


@pytest.mark.parametrize("channels", [1, 3, 16])
def test_sub_keys_agree_with_their_router(spark, channels):
    router = SubKeys(HOT, np.arange(1, 64), Ring(channels))
    cold = RNG.integers(0, 2**64, 3_000, dtype=np.uint64)
    hashes = RNG.permutation(np.concatenate([np.repeat(HOT, 30), cold]))
    sequence = RNG.integers(-(2**40), 2**62, len(hashes))
    column = sub_key_column(F.col("hash"), F.col("sequence"), router)
    got = evaluated(spark, column, hash=hashes.view(np.int64), sequence=sequence)
    np.testing.assert_array_equal(got, router.route(hashes, sequence))


def test_without_hot_keys_rows_go_by_the_ring(spark):
    router = split_hot_keys(HOT[:0], np.zeros(0), Ring(5))
    column = sub_key_column(F.col("hash"), F.lit(1), router)
    np.testing.assert_array_equal(evaluated(spark, column, hash=HOT.view(np.int64)), Ring(5).route(HOT))


@pytest.mark.parametrize("first", [-30, 0, 2**40])
def test_rate_aware_panes_agree_with_their_router(spark, first):
    shares, _ = split_panes(PaneHistory.start(7), SIZES)
    router = plan_panes(first, shares)
    assert (router.homes < 0).any()
    assert (router.homes >= 0).any()
    far = np.array([-(2**62), first - 1, first + len(SIZES), 2**62])
    panes = np.concatenate([RNG.integers(first, first + len(SIZES), 5_000), far])
    sequence = RNG.integers(-(2**40), 2**62, len(panes))
    column = rate_pane_column(F.col("pane"), F.col("sequence"), router)
    got = evaluated(spark, column, pane=panes, sequence=sequence)
    np.testing.assert_array_equal(got, router.route(panes, sequence))


@pytest.mark.parametrize("panes", [0, 5])
def test_a_plan_without_split_panes_needs_no_slots(spark, panes):
    router = plan_panes(3, np.tile(np.eye(5)[::-1], (panes // 5, 1)))
    ids = np.arange(-10, 20)
    got = evaluated(spark, rate_pane_column(F.col("pane"), F.lit(0), router), pane=ids)
    np.testing.assert_array_equal(got, router.route(ids, np.zeros(30, np.int64)))


def test_plain_panes_agree_with_their_router(spark):
    panes = np.array([-(2**62), -17, -1, 0, 1, 15, 16, 2**62])
    got = evaluated(spark, plain_pane_column(F.col("pane"), PlainPanes(16)), pane=panes)
    np.testing.assert_array_equal(got, PlainPanes(16).route(panes))


def test_every_column_is_an_expression_of_spark_itself(spark):
    shares, _ = split_panes(PaneHistory.start(4), SIZES)
    row = F.monotonically_increasing_id()
    by_key = sub_key_column(F.xxhash64("id"), row, SubKeys(HOT, np.full(63, 2), Ring(4)))
    by_pane = rate_pane_column(F.col("id"), row, plan_panes(0, shares))
    frame = spark.range(100).select(by_key.alias("a"), by_pane.alias("b"))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in plan
