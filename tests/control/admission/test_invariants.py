"""What holds of Algorithm 1 under every strategy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control.admission.clusters import CAPACITY, clusters
from penstock.control.admission import STRATEGIES, ForecastIntervals, Packing, Rules, assign
from penstock.control.admission.algorithm import overloaded
from penstock.control.admission.cluster import loads

KEPT = [each for each in STRATEGIES.values() if not each.afresh]
ALL = list(STRATEGIES.values())
PLANNERS = [*(Packing(each) for each in ALL), ForecastIntervals()]
BOUND, EPS = 5.0, 1e-6

few = settings(max_examples=25, deadline=None)
every = pytest.mark.parametrize("strategy", ALL, ids=lambda each: f"{each.name}-{each.pack.__name__}")
every_planner = pytest.mark.parametrize("planner", PLANNERS, ids=lambda each: each.name)


def placed(strategy, cluster, outlook, most=1000):
    return assign(strategy, cluster, outlook, Rules(BOUND, 0.95, most))


@every_planner
@few
@given(given_=clusters())
def test_every_stream_has_exactly_one_gate(planner, given_):
    cluster, outlook = given_
    found = planner.plan(cluster, outlook, 1000)
    assert len(found.home) == len(cluster.home)
    assert (found.home >= 0).all()
    assert (found.home < found.gates).all()


@every
@few
@given(given_=clusters())
def test_no_gate_is_above_its_capacity_unless_by_one_stream_or_those_that_stay(strategy, given_):
    cluster, outlook = given_
    found = placed(strategy, cluster, outlook)
    load = loads(found.home, found.size, found.gates)
    for gate in np.flatnonzero(load > CAPACITY * (1 + EPS)):
        here = np.flatnonzero(found.home == gate)
        came = here[cluster.home[here] != gate]
        # Nothing was added to what could not leave, or one stream alone is too large.
        fixed = here[~cluster.movable[here]]
        if len(here[found.size[here] > 0]) > 1:
            assert len(came) == 0 or len(here) == 1
            assert found.size[fixed].sum() + found.size[here].max() > CAPACITY


@pytest.mark.parametrize("strategy", KEPT, ids=lambda each: each.name)
@few
@given(given_=clusters())
def test_streams_of_gates_that_are_not_overloaded_stay(strategy, given_):
    cluster, outlook = given_
    found = placed(strategy, cluster, outlook)
    over = overloaded(cluster, loads(cluster.home, found.size, len(cluster.capacity)), BOUND)
    moved = np.flatnonzero((found.home != cluster.home) & (cluster.home >= 0))
    assert over[cluster.home[moved]].all()


@pytest.mark.parametrize("strategy", KEPT, ids=lambda each: each.name)
@few
@given(given_=clusters())
def test_overloaded_and_closed_gates_are_no_bins(strategy, given_):
    cluster, outlook = given_
    found = placed(strategy, cluster, outlook)
    over = overloaded(cluster, loads(cluster.home, found.size, len(cluster.capacity)), BOUND)
    targets = found.home[found.home != cluster.home]
    old = targets[targets < len(cluster.capacity)]
    assert not over[old].any()
    assert cluster.open[old].all()


@every_planner
@few
@given(given_=clusters())
def test_streams_that_may_not_move_stay(planner, given_):
    cluster, outlook = given_
    found = planner.plan(cluster, outlook, 1000)
    fixed = ~cluster.movable & (cluster.home >= 0)
    assert (found.home[fixed] == cluster.home[fixed]).all()


@every_planner
@few
@given(given_=clusters(), most=st.integers(0, 5))
def test_no_more_moves_than_allowed(planner, given_, most):
    cluster, outlook = given_
    found = planner.plan(cluster, outlook, most)
    assert np.count_nonzero((found.home != cluster.home) & (cluster.home >= 0)) <= most


@every_planner
@few
@given(given_=clusters())
def test_the_same_question_has_the_same_answer(planner, given_):
    cluster, outlook = given_
    first, second = (planner.plan(cluster, outlook, 1000) for _ in range(2))
    assert first.home.tolist() == second.home.tolist()
    assert first.drained.tolist() == second.drained.tolist()
    assert first.why == second.why


@every_planner
@few
@given(given_=clusters())
def test_a_drained_gate_holds_nothing(planner, given_):
    cluster, outlook = given_
    found = planner.plan(cluster, outlook, 1000)
    assert not np.isin(found.home, found.drained).any()


@few
@given(given_=clusters())
def test_our_strategy_fills_no_closed_gate_and_those_that_it_relieves_only_in_exchange(given_):
    cluster, outlook = given_
    found = ForecastIntervals().plan(cluster, outlook, 1000)
    moved = found.home != cluster.home
    gates = len(cluster.capacity)
    came = np.bincount(found.home[moved], minlength=found.gates)[:gates]
    left = np.bincount(cluster.home[moved & (cluster.home >= 0)], minlength=gates)
    assert not came[~cluster.open].any()
    for gate, why in found.why.items():
        assert why != "overloaded" or came[gate] <= left[gate]
        assert why != "emptied" or came[gate] == 0
