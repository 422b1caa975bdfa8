import time

import pyarrow as pa
import pytest

from penstock.benchmarks.latency import Deliveries, latency

SECOND = 1_000_000


def window(end_us):
    return pa.table({"window_end": pa.array([end_us, end_us], pa.timestamp("us", tz="UTC"))})


def test_the_last_delivery_of_a_window_counts():
    deliveries = Deliveries()
    end = time.time_ns() // 1000 - SECOND
    deliveries.record(window(end), 0)
    time.sleep(0.05)
    deliveries.record(window(end), 1)
    [seconds] = deliveries.latencies(end, end)
    assert 1.05 <= seconds < 2


def test_windows_of_the_warm_up_do_not_count():
    deliveries = Deliveries()
    end = time.time_ns() // 1000
    deliveries.record(window(end), 0)
    assert deliveries.latencies(end + 1, end + SECOND) == []


def test_a_measurement_has_to_outlast_its_warm_up():
    with pytest.raises(ValueError, match="warm-up"):
        latency(seconds=10)
