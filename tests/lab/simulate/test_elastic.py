"""Operators with units that come and go: nothing is lost, and queues are those of first come first served."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.scaling import Edge, Incremental, ScalingLimits, Static, TargetLatency
from penstock_lab.algorithms import Ds2, FlinkAutoscaler
from penstock_lab.simulate.elastic import Arrivals, ElasticCosts, Operator, queue_up, simulate_elastic
from penstock_lab.simulate.groupings import DealtInTurn, MergedCosts, PerUnitSketches
from penstock_lab.simulate.pool import PoolCosts, least_node_seconds, simulate_pool

_CHAIN = (Operator("first", 0.01), Operator("second", 0.02, (Edge(0),)))


def _arrivals(rate: float, seconds: float, seed: int = 7) -> Arrivals:
    rng = np.random.default_rng(seed)
    count = int(rate * seconds)
    return Arrivals(np.sort(rng.random(count)) * seconds, rng.integers(0, 64, count))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=40))
def test_tuples_begin_first_come_first_served(tuples: list[tuple[int, int, int]]) -> None:
    routes, seconds, gaps = (np.array(each) for each in zip(*tuples, strict=True))
    arrivals, free, expected = np.cumsum(gaps), [2.0, 0.0, 0.0], []
    for unit, taken, arrival in zip(routes, seconds, arrivals, strict=True):
        expected.append(max(free[unit], arrival))
        free[unit] = expected[-1] + taken
    starts, after = queue_up(routes, seconds * 1.0, arrivals * 1.0, np.array([2.0, 0.0, 0.0]))
    assert starts == pytest.approx(expected)
    assert after == pytest.approx(free)


@pytest.mark.parametrize("grouping", [DealtInTurn, PerUnitSketches, MergedCosts])
def test_every_tuple_comes_to_the_end_once_however_units_change(grouping: type) -> None:
    cost = np.random.default_rng(7).integers(1, 40, 64) / 1_000
    operators = (Operator("first", 0.001), Operator("second", cost, (Edge(0),), grouping))
    arrivals = _arrivals(90.0, 100.0)
    policy = Incremental(ScalingLimits(quota=12))
    course = simulate_elastic(
        operators, arrivals, policy, ElasticCosts(pause=2.0), seconds=300.0, rng=np.random.default_rng(7)
    )
    assert course.changes > 3
    assert course.unfinished == 0
    assert np.sort(course.born) == pytest.approx(arrivals.times)
    assert (course.latency > 0).all()


def test_what_is_not_done_counts_as_late() -> None:
    course = simulate_elastic(
        _CHAIN, _arrivals(100.0, 60.0), Static(), ElasticCosts(), seconds=60.0, rng=np.random.default_rng(7)
    )
    assert len(course.done) + course.unfinished == 6_000
    assert course.late(1e9) == pytest.approx(course.unfinished / 6_000)
    assert 0.4 < course.late(1e9) < 0.6  # one unit does half of it


def test_a_filter_lets_its_part_through_and_the_policy_sees_it() -> None:
    operators = (Operator("first", 0.001), Operator("second", 0.001, (Edge(0, 0.3),)))
    course = simulate_elastic(
        operators, _arrivals(200.0, 60.0), Static(), ElasticCosts(), seconds=80, rng=np.random.default_rng(7)
    )
    assert len(course.done) / 12_000 == pytest.approx(0.3, abs=0.03)
    assert course.loads[2].operators[1].parents[0].selectivity == pytest.approx(0.3, abs=0.05)


def test_a_merged_sketch_knows_costs_after_a_change() -> None:
    hashes, seconds = np.array([1, 2], np.uint64), np.array([0.1, 1.0])
    merged = MergedCosts(2)
    for _ in range(8):
        routes = merged.route(hashes)
        for unit in (0, 1):
            merged.completed(unit, hashes[routes == unit], seconds[routes == unit])
        merged.told()
    merged.resized(3)
    # Ten cheap ones weigh as much as a dear one: the first unit gets that alone.
    routes = merged.route(np.array([2] + [1] * 20, np.uint64))
    assert np.bincount(routes, minlength=3).tolist() == [1, 10, 10]


def test_a_pool_serves_all_work_and_waits_follow_from_the_queue() -> None:
    work = np.append(np.full(20, 2.0), np.zeros(20))
    course = simulate_pool(work, Static(), PoolCosts(units=1))
    assert course.waits[19] == pytest.approx(20.0)
    assert course.within(10.0) == pytest.approx(0.5)
    assert course.node_seconds == 40


def test_no_policy_needs_less_than_the_clairvoyant() -> None:
    rng = np.random.default_rng(7)
    work = rng.poisson(np.interp(np.arange(600), [0, 200, 400, 600], [2, 12, 12, 2]) * 100) / 100
    least = least_node_seconds(work, 10.0, 10)
    assert work.sum() <= least <= 1.05 * work.sum()
    for policy in (TargetLatency(bound=10.0), Incremental(), FlinkAutoscaler(), Ds2()):
        course = simulate_pool(work, policy, PoolCosts(tick=10))
        assert course.node_seconds >= least or course.within(10.0) < 1
