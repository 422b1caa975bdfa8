"""The merge costs of `penstock bench order`, in a small size; its runs on Spark are tests of results."""

from penstock_lab.bench.order import BOUNDS, OrderSize, merge_costs


def test_every_bound_has_a_cost_and_gives_every_batch():
    rows = merge_costs(OrderSize(merged_windows=5, keys=16, repeats=1), seed=7)
    assert len(rows) == len(BOUNDS)
    assert all(row["batches"] == 8 * 5 and row["us_a_batch"] > 0 for row in rows)
