import numpy as np
import pyarrow as pa
import pytest

from penstock_lab.bench.admission import QUICK, _Counting, _scaled, admission
from penstock_lab.workloads.rates import rates_of


def counted(*parts):
    counting = _Counting("127.0.0.1:1")
    for stream, numbers in parts:
        counting._count(pa.record_batch({"stream": [stream] * len(numbers), "n": numbers}))
    return counting


def test_every_lost_and_doubled_row_is_counted():
    pushed = {"a": 5, "b": 3}
    whole = counted(("a", [0, 1]), ("b", [0, 1, 2]), ("a", [2, 3, 4]))
    assert (whole.lost(pushed), whole.doubled) == (0, 0)
    bad = counted(("a", [0, 1, 1, 3, 4]), ("b", [0, 1]))
    assert (bad.lost(pushed), bad.doubled) == (2, 1)


def test_rates_and_times_are_scaled_alike():
    made = rates_of("bursty", np.random.default_rng(1), 20, streams=4)
    found = _scaled(made, QUICK)
    assert found.rows.sum() == pytest.approx(made.rows.sum() * QUICK.share)
    assert found.declared["burst_peak"] == pytest.approx(made.declared["burst_peak"] * QUICK.share)
    assert found.declared["period"] == pytest.approx(made.declared["period"] / 10 * QUICK.seconds)
    assert found.declared["burst_share"] == pytest.approx(made.declared["burst_share"])


@pytest.mark.soak
def test_the_quick_form_loses_and_doubles_nothing():
    report = admission(QUICK, strategies=("drf-m",))
    assert [check.ok for check in report.checks if "rows" in check.name] == [True, True]
