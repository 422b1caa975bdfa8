"""Penstock's own policy: it plans for a latency, weighs a change, and asks first what is wrong."""

import pytest
from tests.control.scaling.loads import Loop, load

from penstock.control.scaling import TargetLatency
from penstock.control.scaling.fluid import Ramp, course
from penstock.errors import BadScaling


def settled(policy: TargetLatency, rate: float, ticks: int = 12, **more: object) -> float:
    """A steady load up to an instant."""
    for number in range(ticks):
        policy.observe(load(10.0 * (number + 1), rate, **more))  # type: ignore[arg-type]
        policy.decide(10.0 * (number + 1))
    return 10.0 * ticks


def test_a_ramp_is_followed_without_exceeding_the_bound() -> None:
    rates = [20.0] * 20 + [20.0 + 10.0 * tick for tick in range(30)] + [310.0] * 20
    loop = Loop(TargetLatency(bound=10.0)).run(rates)
    assert max(loop.waits) <= 10.0
    assert loop.course[-1] <= 8  # 6.2 units of work


def test_a_looser_bound_needs_no_more_units() -> None:
    rates = [20.0] * 20 + [500.0] * 2 + [20.0] * 30
    tight, loose = (Loop(TargetLatency(bound=bound)).run(rates) for bound in (10.0, 60.0))
    assert sum(loose.course) < sum(tight.course)


def test_a_backlog_counts_as_well_as_the_rate() -> None:
    policy = TargetLatency(bound=10.0)
    at = settled(policy, 20.0)
    policy.observe(load(at + 10, 20.0, pending=5_000.0, use=(1.0,)))
    (scale,) = policy.decide(at + 10)
    assert scale.units > 2  # the rate alone needs one
    assert not scale.held
    assert "100.0 wait" in scale.reason


def test_units_stay_until_the_price_of_a_change_is_paid() -> None:
    dear = Loop(TargetLatency(bound=10.0, patience=8.0)).run([300.0] * 20 + [20.0] * 20)
    cheap = Loop(TargetLatency(bound=10.0, patience=1.0)).run([300.0] * 20 + [20.0] * 20)
    assert cheap.course[-1] <= 2
    assert sum(cheap.course) < sum(dear.course)


def test_skew_is_rebalanced_and_not_scaled() -> None:
    policy = TargetLatency(bound=10.0)
    at = settled(policy, 100.0, units=4)
    policy.observe(load(at + 10, 100.0, units=4, pending=5_000.0, use=(1.0, 0.3, 0.3, 0.3)))
    (scale,) = policy.decide(at + 10)
    assert scale.held.startswith("skew")


def test_units_that_wait_for_a_sink_are_not_joined_by_more() -> None:
    policy = TargetLatency(bound=10.0)
    at = settled(policy, 100.0, units=4)
    policy.observe(load(at + 10, 100.0, units=4, pending=5_000.0, use=(0.2,) * 4))
    (scale,) = policy.decide(at + 10)
    assert "slow sink" in scale.held


def test_a_latency_that_comes_from_outside_is_said_and_not_scaled() -> None:
    policy = TargetLatency(bound=10.0)
    at = settled(policy, 40.0, units=2)
    policy.observe(load(at + 10, 40.0, units=1, use=(0.4,), latency=30.0))
    policy.decide(at + 10)
    policy.observe(load(at + 20, 40.0, units=1, use=(0.4,), latency=30.0))
    found = policy.decide(at + 20)
    assert all(scale.held for scale in found)


def test_what_a_pause_held_up_gets_time_to_be_caught_up() -> None:
    rates = [100.0] * 12 + [0.0] * 3 + [400.0] + [100.0] * 10
    paused = Loop(TargetLatency(bound=10.0), units=3).run(rates)
    grown = Loop(TargetLatency(bound=10.0), units=3).run([100.0] * 12 + [100.0] * 3 + [400.0] + [100.0] * 10)
    assert max(paused.course) < max(grown.course)
    assert paused.pending == 0


def test_a_queue_drains_as_a_fluid() -> None:
    ramp = Ramp(before=1, after=3, ready=10.0, pause=2.0)
    plan = course(20.0, [5.0, 5.0], 10.0, ramp)
    assert plan.queue == pytest.approx((15.0, 0.0))
    assert plan.waits[0] == pytest.approx(2.0 + 15.0 / 3)


@pytest.mark.parametrize("wrong", [{"bound": 0.0}, {"goal": 2.0}, {"patience": -1.0}])
def test_settings_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(BadScaling, match="give a"):
        TargetLatency(**wrong)
