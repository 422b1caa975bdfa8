import numpy as np
import pytest

from penstock.routing.balanced import balanced
from penstock.routing.readjust import readjust
from penstock.routing.redistribute import redistribute
from penstock.routing.resources import Growth, Resources
from penstock.routing.scan import scan
from penstock.routing.threshold import Goal
from penstock_lab.reproduce.zipf_keys import zipf_keys
from routing.partitions import start

KEYS = zipf_keys(200_000, 1.0, seed=5)


def grow(construct, goal, channels):
    after = start(seed=5)
    for count in range(2, channels + 1):
        before, after = after, construct(after, KEYS.named.at_least(2e-4), count, goal)
    return before, after


@pytest.mark.parametrize("letters", ["LCL", "LLL", "CCL"])
def test_evener_than_the_three_and_no_more_migration_than_redist(letters):
    resources = Resources.of(letters)
    goal = Goal(resources, domain=200_000)
    three = {each: grow(each, goal, 8) for each in (scan, redistribute, readjust)}
    before, after = grow(balanced, goal, 8)
    best = min(KEYS.balance(pair, resources).overall for _, pair in three.values())
    assert KEYS.balance(after, resources).overall < best
    assert KEYS.migration(before, after, resources) <= KEYS.migration(*three[redistribute], resources)


def test_the_table_has_the_keys_that_the_others_have():
    goal = Goal(domain=200_000)
    assert set(grow(balanced, goal, 8)[1].keys.tolist()) == set(grow(scan, goal, 8)[1].keys.tolist())


def test_shrinking_moves_little_more_than_the_channel_that_goes():
    goal = Goal(domain=200_000)
    _, pair = grow(balanced, goal, 8)
    lost = np.bincount(pair.route(KEYS.hashes), KEYS.costs[Growth.LINEAR])[7]
    after = balanced(pair, KEYS.named.at_least(2e-4), 7, goal)
    assert KEYS.migration(pair, after, goal.resources) <= 7 * lost + 0.15


def test_nothing_moves_while_the_imbalance_is_tolerated():
    goal, keys = Goal(domain=200_000), zipf_keys(200_000, 0.7, seed=5).named
    pair = start(seed=5)
    for count in range(2, 7):
        pair = balanced(pair, keys.at_least(2e-4), count, goal)
    again = balanced(pair, keys.at_least(2e-4), 6, goal)
    assert np.array_equal(pair.ring.cells, again.ring.cells)
    assert np.array_equal(pair.route(keys.hashes), again.route(keys.hashes))
