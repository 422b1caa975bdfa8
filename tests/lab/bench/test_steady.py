import time

import numpy as np
import pyarrow as pa

import penstock as ps
from penstock_lab.bench.steady import Rate, SteadySource

RATE = Rate(start_us=1_000_000, rows_per_s=4, keys=3, seed=1)


def test_a_tuple_happens_when_it_arrives():
    #  number  0     1     2     3     4
    #  second  1.00  1.25  1.50  1.75  2.00
    assert RATE.arrived(999_999) == 0
    assert RATE.arrived(2_000_000) == 4
    times = RATE.rows(3, 5).column("time").cast(pa.int64()).to_pylist()
    assert times == [1_750_000, 2_000_000]


def test_rows_do_not_depend_on_how_they_are_cut():
    whole = pa.Table.from_batches([RATE.rows(0, 100)])
    cut = pa.Table.from_batches([RATE.rows(0, 37), RATE.rows(37, 100)])
    assert whole.equals(cut.combine_chunks())


def test_keys_are_even_and_values_in_range():
    table = Rate(0, 1000, 10, 7).rows(0, 10_000).to_pydict()
    assert {table["key"].count(key) // 100 for key in range(10)} <= {9, 10}
    assert 0 <= min(table["value"]) < max(table["value"]) < 128


def test_a_run_reads_everything_that_arrived_once(spark):
    rate = Rate(time.time_ns() // 1000 - 2_000_000, rows_per_s=1000, keys=10, seed=1)
    sink, schema = ps.memory(), "time timestamp, key bigint, value double"
    run = ps.stream("steady", schema, "time", source=SteadySource(rate)).start(sink)
    try:
        while run.running and run.counts.rows < 2000:
            time.sleep(0.1)
    finally:
        run.stop()
    times = np.sort(sink.table()["time"].cast(pa.int64()).to_numpy())
    assert len(times) == run.counts.rows >= 2000
    assert (np.diff(times) == 1000).all()
