from penstock.control.admission import ForecastIntervals
from penstock_lab.bench.decisions import period


def test_a_period_relieves_gates_that_were_filled_at_random():
    observe, decide, moves = period(ForecastIntervals(), 400, 8, seed=7)
    assert observe >= 0
    assert decide >= 0
    assert 0 < moves < 100
