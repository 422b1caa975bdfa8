import numpy as np
import pytest

from penstock_lab.bench.ramps import Ramps

SECOND = 1_000_000
RAMPS = Ramps(5 * SECOND, ((0, 0), (10, 100), (20, 100)))


def test_the_count_is_the_area_below_the_rates():
    #  rate   0 ─▶ 100 ──▶ 100
    #  second 5    15      25
    assert [RAMPS.arrived(second * SECOND) for second in (0, 5, 15, 25, 99)] == [0, 0, 500, 1500, 1500]
    assert RAMPS.total == 1500


def test_a_tuple_has_arrived_once_the_count_has_passed_it():
    arrivals = RAMPS.arrivals(0, RAMPS.total - 1)
    assert (np.diff(arrivals) > 0).all()
    for number in (1, 499, 1000):
        at = int(arrivals[number - 1])
        assert RAMPS.arrived(at - SECOND // 50) < number <= RAMPS.arrived(at + SECOND // 50)


def test_tuples_do_not_depend_on_how_they_are_cut():
    cut = np.concatenate([RAMPS.arrivals(0, 37), RAMPS.arrivals(37, 100)])
    assert cut.tolist() == pytest.approx(RAMPS.arrivals(0, 100).tolist())
