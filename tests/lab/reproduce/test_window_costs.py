from dataclasses import replace

from penstock_lab.reproduce.window_costs import WORKLOADS, swept


def test_costs_that_are_measured_with_windows_alone_tell_those_of_batches():
    """Of counts, not of times: a busy machine may bend those, and the command decides about them."""
    sweep = swept(replace(WORKLOADS[2], closed=24, density=40), quick=True, seed=7)
    assert sweep.chosen in sweep.rates
    assert set(sweep.rates) == set(sweep.predicted) == set(sweep.cost) == set(sweep.modelled)
    assert sweep.costs.row > 0
    assert sweep.costs.window > 0
