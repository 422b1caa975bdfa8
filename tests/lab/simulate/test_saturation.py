import numpy as np
import pytest

from penstock_lab.simulate import Dealt, Gridded, Links, Plan, Stage, Window, saturate, sweep


def test_saturation_is_the_capacity_of_even_channels():
    plan = Plan((Stage("map", 0.01, Dealt(5), tuple(range(5))),), np.ones(5))
    assert saturate(plan, 7).rate == pytest.approx(500, rel=0.03)
    assert plan.ideal() == pytest.approx(500)


@pytest.mark.parametrize("window", [Window(seconds=5.0), Window(rows=1_000)])
def test_saturation_lies_below_the_ideal(window):
    stage = Stage("product", 1e-4, Gridded(9), tuple(range(9)), window=window, compare=1e-6)
    plan = Plan((stage,), np.ones(9))
    assert 0.8 * plan.ideal() < saturate(plan, 7).throughput < 1.02 * plan.ideal()


def test_nothing_is_sustained_where_connections_take_all_time():
    stage = Stage("map", 0.01, Dealt(2), (0, 1), links=Links(connection=0.1))
    assert saturate(Plan((stage,), np.ones(2), sources=10), 7).throughput == 0


def test_throughput_never_exceeds_load_or_capacity():
    plan = Plan((Stage("map", 0.01, Dealt(4), tuple(range(4))),), np.ones(4))
    for seen in sweep(plan, (50, 200, 399, 401, 5_000), 7):
        assert seen.throughput <= min(seen.offered * 1.01, 400.001)
