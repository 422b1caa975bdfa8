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


def algorithm_4(before, known, channels, goal, most):  # noqa: C901 -- as deep as the loops of the paper
    """The paper's loops as they are printed, one candidate after the other; a key has `most` turns."""
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
                        if most in (turns[d1], -1 if d2 is None else turns[d2]):
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
@given(worlds, st.sampled_from([1, 2, 5]))
def test_readj_is_algorithm_4(world, turns):
    letters, weighing, channels, seed = world
    goal = Goal(Resources.of(letters), domain=9, utility=weighing)
    known, before = drawn(seed, 9), start(channels - 1, seed)
    placed = readj(before, known, channels, goal, turns).targets.tolist()
    assert placed == algorithm_4(before, known, channels, goal, turns)


@pytest.mark.parametrize("letters", ["LCL", "LLL", "CCL", "LQL"])
def test_channels_come_and_go(letters):
    known, goal = zipf(2000, 1.0), Goal(Resources.of(letters), domain=2000)
    pair = grown(readj, known, 5, goal)
    for channels in (3, 3, 6, 1):
        pair = readj(pair, known, channels, goal)
        assert pair.channels == channels
        assert set(pair.route(known.hashes).tolist()) == set(range(channels))
