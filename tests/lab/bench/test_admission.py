from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from penstock_lab.bench.admission import FULL, QUICK, _checks, _Counting, _scaled, admission
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


def test_the_order_of_strategies_is_that_of_the_simulation():
    def order(**live_and_simulated):
        rows = [
            {
                "case": "sfvar",
                "engine": name,
                "redirections": live,
                "simulated": paper,
                "lost": 0,
                "doubled": 0,
            }
            for name, (live, paper) in live_and_simulated.items()
        ]
        return _checks(replace(FULL, workloads=("sfvar",)), rows)[-1]

    assert order(a=(50, 10), b=(60, 20), c=(55, 19)).ok, "b and c are in no order"
    assert order(a=(50, 10), b=(40, 20)).value == 1


@pytest.mark.soak
def test_the_quick_form_loses_and_doubles_nothing():
    report = admission(QUICK, strategies=("drf-m",))
    assert [check.ok for check in report.checks if "rows" in check.name] == [True, True]
