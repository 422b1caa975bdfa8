import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812

from penstock_lab.bench.split_data import PANE, SplitData
from penstock_lab.bench.splits import splits
from penstock_lab.bench.task_time import task_time


def test_rows_burst_and_keys_are_skewed(tmp_path):
    data = SplitData(rows=600_000, seed=3)
    table = pq.read_table(data.write(tmp_path))
    np.testing.assert_array_equal(np.bincount(table["time"].to_numpy() // PANE), data.sizes)
    assert data.sizes.max() > 4 * np.median(data.sizes)
    share = np.bincount(table["key"].to_numpy(), minlength=16_384) / 600_000
    assert share[:10] == pytest.approx(data.frequencies[:10], rel=0.1)


def test_task_time_counts_the_tasks_of_its_own_jobs(spark):
    heavy = spark.range(3_000_000).select(F.max(F.xxhash64("id")))
    heavy.collect()
    cost = task_time(spark, heavy.collect)
    assert 0 < cost.cpu_s < 60
    assert task_time(spark, lambda: None).cpu_s == 0


def test_both_splits_are_measured_in_both_forms(spark):
    report = splits(rows=20_000, repeats=1, seed=7)
    assert len(report.rows) == 8
    assert all(row["cpu_ns"] > 0 for row in report.rows)
    assert [check.ceiling for check in report.checks] == [0.17, 0.04]
