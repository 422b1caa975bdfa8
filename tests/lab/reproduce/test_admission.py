import numpy as np
import pytest

from penstock.control.admission import ARD, DRF_M, ForecastIntervals, Packing
from penstock_lab.reproduce.admission import compare
from penstock_lab.workloads import rates_of


@pytest.mark.parametrize("seed", [3])
def test_strategies_are_measured_on_the_same_rates(seed):
    made = [rates_of("psfcw", np.random.default_rng(seed), 70, streams=24)]
    planners = {"ARD": Packing(ARD), "DRF-M": Packing(DRF_M), "penstock": ForecastIntervals()}
    found = compare(made, planners)
    assert list(found) == list(planners)
    for spread in found.values():
        assert spread["gates over optimal, %"][0] >= 0
        assert spread["redirections a period"][0] < 24
        assert spread["redirections a period"][1] == 0  # one seed has no spread


def test_the_same_seed_gives_the_same_figures():
    made = [rates_of("bursty", np.random.default_rng(5), 40, streams=16)]
    first, second = (compare(made, {"penstock": ForecastIntervals()}) for _ in range(2))
    assert first == second
