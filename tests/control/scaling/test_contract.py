"""What every scaling policy of the registry promises, whatever it computes."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.control.scaling.loads import Loop, chain, load

from penstock.control.scaling import SCALERS, Scale, Scaler, ScalingLimits, scaler
from penstock.errors import BadScaling
from penstock_lab.algorithms import Learning

EVERY = (*SCALERS, Learning.name)
"""The policies of the registry, and one that the lab compares them with."""

EAGER = ("incremental", "qos", "autoscale", "penstock")
"""Policies that need no training to grow under load."""


def made(name: str, limits: ScalingLimits | None = None) -> Scaler:
    """The policy by its name; the static one with something to do."""
    if name == Learning.name:
        return Learning(limits)
    settings = {"static": {"units": 3}, "qos": {"bound": 5.0}, "penstock": {"bound": 5.0}}
    return scaler(name, limits, **settings.get(name, {}))


def rates(seed: int, ticks: int = 40) -> list[float]:
    rng = np.random.default_rng(seed)
    return (100 + 80 * np.sin(np.arange(ticks) / 5) + rng.uniform(0, 10, ticks)).tolist()


def told(policy: Scaler, course: list[float]) -> list[list[Scale]]:
    found = []
    for number, rate in enumerate(course):
        policy.observe(load(10.0 * (number + 1), rate, units=2, pending=rate))
        found.append(policy.decide(10.0 * (number + 1)))
    return found


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_decided_before_anything_is_seen(name: str) -> None:
    assert made(name).decide(0.0) == []


@pytest.mark.parametrize("name", EVERY)
def test_the_same_loads_give_the_same_decisions(name: str) -> None:
    assert told(made(name), rates(7)) == told(made(name), rates(7))


@pytest.mark.parametrize("name", EVERY)
def test_a_restart_between_any_two_ticks_changes_nothing(name: str) -> None:
    whole, parts = made(name), made(name)
    for number, rate in enumerate(rates(7)):
        seen, now = load(10.0 * (number + 1), rate, units=2, pending=rate), 10.0 * (number + 1)
        whole.observe(seen)
        parts.observe(seen)
        assert whole.decide(now) == parts.decide(now), f"seed 7, tick {number}"
        again = made(name)
        again.resume(json.loads(json.dumps(parts.to_json())))
        parts = again


@pytest.mark.parametrize("name", EVERY)
def test_a_state_of_another_policy_is_refused(name: str) -> None:
    with pytest.raises(BadScaling, match="a state of policy"):
        made(name).resume({**made(name).to_json(), "name": "another"})


@pytest.mark.parametrize("name", EVERY)
def test_units_stay_within_limits_and_every_decision_has_a_reason(name: str) -> None:
    limits = ScalingLimits(least=2, most=5)
    loop = Loop(made(name, limits), units=2).run([10.0] * 5 + [2_000.0] * 15 + [1.0] * 30)
    assert all(2 <= each <= 5 for each in loop.course)
    for each in told(made(name, limits), [500.0] * 12):
        assert all(scale.reason and math.isfinite(scale.units) for scale in each)


@pytest.mark.parametrize("name", EVERY)
def test_all_pools_together_stay_within_the_quota(name: str) -> None:
    policy = made(name, ScalingLimits(quota=6))
    units = [1, 1, 1]
    for number in range(30):
        policy.observe(chain(10.0 * (number + 1), 900.0, units))
        for scale in policy.decide(10.0 * (number + 1)):
            if not scale.held:
                units[int(scale.pool[1])] = scale.units
        assert sum(units) <= 6


@pytest.mark.parametrize("name", EVERY)
def test_measures_that_fail_change_nothing_and_then_the_fallback_counts(name: str) -> None:
    policy = made(name, ScalingLimits(fallback=4, fallback_after=25.0))
    policy.observe(load(10.0, 30.0, units=3))
    policy.decide(10.0)
    found = []
    for number in range(2, 7):
        policy.observe(load(10.0 * number, math.nan, units=3))
        found.append([scale.units for scale in policy.decide(10.0 * number) if not scale.held])
    assert found == [[], [], [4], [4], [4]]


@pytest.mark.parametrize("name", EVERY)
def test_excluded_hours_hold_back_every_wish(name: str) -> None:
    limits = ScalingLimits(excluded_hours=((0, 2),))
    found = [scale for each in told(made(name, limits), [500.0] * 20) for scale in each]
    assert all("excluded" in scale.held for scale in found)
    assert len(found) <= 3, "a cause is told once, or once an iteration"


@pytest.mark.parametrize("name", EAGER)
def test_more_load_gets_more_units_and_less_load_fewer(name: str) -> None:
    loop = Loop(made(name, ScalingLimits(most=40))).run([20.0] * 12 + [400.0] * 36 + [10.0] * 60)
    assert loop.course[47] >= 8  # 400 tuples a second of 20 ms
    assert loop.pending == 0
    assert loop.course[-1] <= 3


@pytest.mark.parametrize("name", ["qos", "autoscale", "penstock"])
def test_operators_that_share_a_pool_are_added_up(name: str) -> None:
    apart, together = made(name), made(name)
    for number in range(12):
        at = 10.0 * (number + 1)
        apart.observe(chain(at, 600.0, [1, 1, 1]))
        together.observe(chain(at, 600.0, [1], shared=True))
        wanted, one = apart.decide(at), together.decide(at)
        if wanted:
            total = sum(scale.units for scale in wanted) + 3 - len(wanted)
            assert [scale.pool for scale in one] == ["cores"]
            assert abs(one[0].units - total) <= 3, "rounding up once instead of three times"
            return
    pytest.fail("nobody grew")


def test_separate_cooldowns_for_out_and_in() -> None:
    policy = made("incremental", ScalingLimits(out_cooldown=25.0, in_cooldown=45.0))
    loop = Loop(policy).run([1_000.0] * 9)
    assert loop.course == [2, 2, 2, 3, 3, 3, 4, 4, 4]
    loop.pending = 0.0
    loop.run([0.0] * 8)
    assert loop.course[9:] == [4, 4, 3, 3, 3, 3, 3, 2]


def test_stabilisation_counts_from_when_units_are_ready() -> None:
    policy = made("autoscale", ScalingLimits(stabilisation=30.0))
    for number in range(1, 30):
        at = 10.0 * number
        starting = 3 if 7 <= number < 10 else 0
        seen = load(at, 400.0, units=2, pending=400.0)
        policy.observe(replace(seen, pools=(replace(seen.pools[0], starting=starting),)))
        if policy.decide(at) and number > 6:
            # Six ticks of a window, three to start, three to settle; what was measured before still counts.
            assert number == 13
            return
    pytest.fail("it never decided again")


def test_a_wish_beyond_the_limits_is_told_once() -> None:
    found = [
        scale for each in told(made("incremental", ScalingLimits(most=2)), [500.0] * 5) for scale in each
    ]
    assert [scale.held for scale in found] == ["limits are 1 to 2 units"]


def test_unknown_names_and_settings_are_refused() -> None:
    with pytest.raises(BadScaling, match="give one of static"):
        scaler("magic")
    with pytest.raises(BadScaling, match="settings"):
        scaler("static", wrong=1)
    with pytest.raises(BadScaling, match="topological order"):
        replace(chain(10.0, 1.0, [1, 1, 1]), operators=chain(10.0, 1.0, [1, 1, 1]).operators[::-1])
