"""Equations 1a and 1b of [000] §3.2, with figures worked out by hand."""

import pytest

from penstock.control.scaling import Edge, Load, OperatorLoad, PoolLoad, Qos, ScalingLimits

TICK = 10.0


def graph(rate, *, selectivity=0.5, pending=0.0, shared=False, fixed=0.0, got=1.0):
    """A query operator of 2 ms a tuple and a merge of 1 ms, as pools of their own or as one."""
    pools = ("cores", "cores") if shared else ("query", "merge")
    out = rate * selectivity
    lost = ((0.5 / got - 0.5, 2),) if got < 1 else ()
    return Load(
        TICK,
        TICK,
        (
            OperatorLoad("query", pools[0], rate * TICK, rate * TICK, pending, 0.002),
            OperatorLoad("merge", pools[1], out * TICK, out * TICK, 0.0, 0.001, (Edge(0, selectivity),)),
        ),
        tuple(PoolLoad(name, 1, (0.5,), shared=lost) for name in dict.fromkeys(pools)),
        fixed=fixed,
    )


def sized(seen, **settings):
    policy = Qos(ScalingLimits(), bound=5.0, **settings)
    policy.observe(seen)
    return policy, {each.pool: each.units for each in policy.decide(TICK)}


def test_equation_1a_sizes_the_query_operator_for_the_expected_rate():
    # ΣRF · c_op / n_p = 1 - H: 1,350 · 0.002 / 0.9 = 3.0 units exactly; 1,351 need a fourth.
    for rate, units in ((1_350.0, 3), (1_351.0, 4)):
        _, found = sized(graph(rate))
        assert found["query"] == units


def test_equation_1b_sizes_the_merge_for_units_at_saturation():
    # 1,351 tuples a second: n_p = 4. At saturation a unit takes (1 - H) / c_op = 0.9 / 0.002 = 450 a second
    # and gives out 0.5 of that: C_op = 225. n_m = n_p · C_op · c_merge / (1 - H) = 4 · 225 · 0.001 / 0.9
    # = 1.0, while the rate as it is would need 675.5 · 0.001 / 0.9 = 0.75.
    policy, _ = sized(graph(1_351.0))
    assert policy.needed(graph(1_351.0), [1_351.0, 0.0])[1] == pytest.approx(1.0)
    # Ten times as selective: C_op = 2,250, n_m = 4 · 2,250 · 0.001 / 0.9 = 10.
    _, found = sized(graph(1_351.0, selectivity=5.0))
    assert found["merge"] == 10


def test_operators_of_one_pool_are_sized_one_by_one_and_added_up():
    # 1,351 · 0.002 / 0.9 = 3.002, and 1.0 for the merge behind 4 units at saturation: ⌈4.002⌉ = 5.
    _, found = sized(graph(1_351.0, shared=True))
    assert found == {"cores": 5}


def test_a_backlog_has_the_bound_less_the_fixed_part_of_an_epoch():
    # 900 wait and have 5 - 2 = 3 s: 300 a second more. (600 + 300) · 0.002 / 0.9 = 2.0.
    policy, found = sized(graph(600.0, pending=900.0, fixed=2.0))
    assert policy.needed(graph(600.0, pending=900.0, fixed=2.0), [600.0, 0.0])[0] == pytest.approx(2.0)
    assert found["query"] == 2


def test_a_unit_that_gets_half_of_its_core_counts_half():
    # 675 · 0.002 / 0.5 / 0.9 = 3.0.
    _, found = sized(graph(675.0, got=0.5))
    assert found["query"] == 3
