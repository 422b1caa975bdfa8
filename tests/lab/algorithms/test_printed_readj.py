import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.routing import Goal, Resources
from penstock.routing.adaptation import CLOSE, UTILITIES, adaptation, utility
from penstock.routing.threshold import allowance
from penstock_lab.algorithms import readj
from routing.partitions import grown, start, zipf

worlds = st.tuples(
    st.sampled_from(["LCL", "LLL", "CCL", "LQL"]),
    st.sampled_from(list(UTILITIES)),
    st.integers(2, 5),
    st.integers(0, 10_000),
)


def drawn(seed, count):
    shares = np.random.default_rng(seed).uniform(0.02, 0.2, count)
    known = zipf(count, 1.0, seed)
    return type(known)(known.hashes, shares / shares.sum())


def algorithm_4(before, known, channels, goal):  # noqa: C901 -- as deep as the loops of the paper
    """The paper's loops as they are printed, one candidate after the other; five turns for each key."""
    adapted = adaptation(before, known, channels, goal)
    keys, shares = range(len(adapted.tracked)), adapted.tracked.shares.tolist()
    homes, places = adapted.homes.tolist(), adapted.homes.tolist()
    turns = [0] * len(places)
    u = 0.0
    while True:
        v, g = None, -math.inf
        present = penalty(adapted, goal, places)
        for i in range(channels):
            for j in range(channels):
                for d1 in [key for key in keys if places[key] == i and i != j]:
                    for d2 in [None, *(key for key in keys if places[key] == j)]:
                        if turns[d1] == 5 or (d2 is not None and turns[d2] == 5):
                            continue
                        after = list(places)
                        after[d1] = j
                        if d2 is not None:
                            after[d2] = i
                        a = penalty(adapted, goal, after)
                        if a[0] >= present[0]:
                            continue
                        cost = adapted.carried + sum(
                            adapted.state[key] for key in keys if after[key] != homes[key]
                        )
                        value = utility(goal.utility)(a[1], cost / adapted.ideal)
                        volume = abs(shares[d1] - (0.0 if d2 is None else shares[d2]))
                        if v is None or (u - value) - g * volume > CLOSE * abs(u):
                            v, g, u = after, (u - value) / volume, value
        if v is None:
            return places
        turns = [turn + (old != new) for turn, old, new in zip(turns, places, v, strict=True)]
        places = v


def penalty(adapted, goal, places):
    """Eq. 19 and 20: a whole number that grows with rho, and rho; constant resources left out."""
    order, factors = 1, []
    for growth, tolerance in zip(goal.resources.growths, goal.resources.tolerances, strict=True):
        if growth.value:
            costs = adapted.loads[adapted.penalty.growths.index(growth)]
            load = [0] * adapted.channels
            for cost, place in zip(costs.tolist(), places, strict=True):
                load[place] += int(cost)
            spread = max(load) - min(load)
            order *= spread
            mean = sum(load) / adapted.channels
            factors.append(spread / (allowance(tolerance, adapted.channels) * mean))
    return order, math.prod(factors) ** (1 / len(factors))


@settings(max_examples=40, deadline=None)
@given(worlds)
def test_readj_is_algorithm_4(world):
    letters, weighing, channels, seed = world
    goal = Goal(Resources.of(letters), domain=9, utility=weighing)
    known, before = drawn(seed, 9), start(channels - 1, seed)
    assert readj(before, known, channels, goal).targets.tolist() == algorithm_4(before, known, channels, goal)


@pytest.mark.parametrize("letters", ["LCL", "LLL", "CCL", "LQL"])
def test_channels_come_and_go(letters):
    known, goal = zipf(2000, 1.0), Goal(Resources.of(letters), domain=2000)
    pair = grown(readj, known, 5, goal)
    for channels in (3, 3, 6, 1):
        pair = readj(pair, known, channels, goal)
        assert pair.channels == channels
        assert set(pair.route(known.hashes).tolist()) == set(range(channels))


def test_a_call_goes_on_where_the_limit_on_turns_has_stopped_the_one_before():
    known, goal = zipf(200, 0.6), Goal(domain=200)
    pair = grown(readj, known, 4, goal)
    again = readj(pair, known, 4, goal)
    first, second = (np.bincount(each.route(known.hashes), known.shares, 4) for each in (pair, again))
    assert np.ptp(second) < np.ptp(first) / 2
