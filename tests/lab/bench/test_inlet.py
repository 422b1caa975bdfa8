import numpy as np

from penstock_lab.bench.inlet import Size, inlet
from penstock_lab.bench.pushing_clients import Load
from penstock_lab.bench.report_rows import FIRST_US, report_rows


def test_a_query_takes_all_rows_of_gates_in_each_part(spark):
    report = inlet(size=Size(filled=40_000, live=40_000, backlog=80_000, repeats=1, unjudged="a few rows"))
    taken = [(row["case"], row["rows"]) for row in report.rows]
    assert taken == [("filled logs", 40_000), ("live", 40_000), ("backlog", 80_000)]
    assert all(row["rows_per_s"] > 0 for row in report.rows)
    assert len(report.checks) == 3


def test_times_of_a_stream_go_on_from_batch_to_batch():
    load = Load("gate", "a:1", ("reports/a",), 2, 10, window=1, seed=1, spacing_us=5)
    times = load.timed(report_rows(10, 1), 30)["time"].cast("int64").to_numpy() - FIRST_US
    assert times.tolist() == (5 * np.arange(30, 40)).tolist()
    plain = Load("gate", "a:1", ("reports/a",), 2, 10, window=1, seed=1)
    assert plain.timed(report_rows(10, 1), 30) == report_rows(10, 1)
