import pyarrow as pa
import pytest

from penstock_lab.bench.latency import Deliveries, latency

SECOND = 1_000_000


def window(end_us):
    return pa.table({"window_end": pa.array([end_us, end_us], pa.timestamp("us", tz="UTC"))})


def test_the_last_delivery_of_a_window_counts():
    readings = iter([2_000_000_000, 2_500_000_000])
    deliveries = Deliveries(readings.__next__)
    deliveries.record(window(SECOND), 0)
    deliveries.record(window(SECOND), 1)
    assert deliveries.latencies(SECOND, SECOND) == [1.5]


def test_windows_of_the_warm_up_do_not_count():
    deliveries = Deliveries()
    deliveries.record(window(SECOND), 0)
    assert deliveries.latencies(SECOND + 1, 2 * SECOND) == []


def test_a_measurement_has_to_outlast_its_warm_up():
    with pytest.raises(ValueError, match="warm-up"):
        latency(seconds=10)
