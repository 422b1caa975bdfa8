import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.routing import PaneHistory, plan_panes, split_panes
from penstock_lab.bench.split_data import PANE, SplitData
from penstock_lab.bench.splits import CHANNELS, ByRate, splits


def test_rows_burst_and_keys_are_skewed(tmp_path):
    data = SplitData(rows=600_000, seed=3)
    table = pq.read_table(data.write(tmp_path))
    np.testing.assert_array_equal(np.bincount(table["time"].to_numpy() // PANE), data.sizes)
    assert data.sizes.max() > 4 * np.median(data.sizes)
    share = np.bincount(table["key"].to_numpy(), minlength=16_384) / 600_000
    assert share[:10] == pytest.approx(data.frequencies[:10], rel=0.1)


def test_panes_are_placed_as_their_router_says_however_rows_are_cut():
    data = SplitData(rows=20_000, seed=3)
    shares, _ = split_panes(PaneHistory.start(CHANNELS), data.sizes)
    router = plan_panes(0, shares)
    panes = np.repeat(np.arange(len(data.sizes)), data.sizes)
    place, table = ByRate(router), pa.table({"pane": panes})
    found = np.concatenate([place.place(table.slice(0, 7_001))[1], place.place(table.slice(7_001))[1]])
    np.testing.assert_array_equal(found, router.route(panes, np.arange(len(panes))))
    assert (router.homes < 0).any()


def test_both_splits_are_measured_in_both_forms(spark):
    report = splits(rows=20_000, repeats=1, seed=7)
    assert len(report.rows) == 8
    assert all(row["cpu_ns"] > 0 for row in report.rows)
    assert [check.ceiling for check in report.checks] == [0.17, 0.04]
