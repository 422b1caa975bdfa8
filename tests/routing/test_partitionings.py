import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing.adaptation import UTILITIES, adaptation
from penstock.routing.balanced import balanced
from penstock.routing.readjust import readjust
from penstock.routing.redistribute import redistribute
from penstock.routing.resources import Resources
from penstock.routing.scan import scan
from penstock.routing.threshold import Goal
from routing.partitions import grown, penalty, plain_redistribute, plain_scan, start, zipf

PAPER = [scan, redistribute, readjust]
EVERY = [*PAPER, balanced]
worlds = st.tuples(
    st.sampled_from(["LCL", "LLL", "CCL", "LQL"]),
    st.sampled_from(list(UTILITIES)),
    st.integers(2, 6),
    st.integers(0, 10_000),
)


def drawn(seed, count=12):
    """Frequencies without ties, so that rounding cannot decide."""
    shares = np.random.default_rng(seed).uniform(0.02, 0.2, count)
    known = zipf(count, 1.0, seed)
    return type(known)(known.hashes, shares / shares.sum())


@settings(max_examples=60, deadline=None)
@given(worlds)
def test_scan_is_algorithm_2(world):
    letters, utility, channels, seed = world
    goal = Goal(Resources.of(letters), domain=12, utility=utility)
    known, before = drawn(seed), start(channels - 1, seed)
    adapted = adaptation(before, known, channels, goal)
    assert scan(before, known, channels, goal).targets.tolist() == plain_scan(adapted, goal)


@settings(max_examples=30, deadline=None)
@given(worlds)
def test_redistribute_is_algorithm_3(world):
    letters, utility, channels, seed = world
    goal = Goal(Resources.of(letters), domain=8, utility=utility)
    known, before = drawn(seed, 8), start(channels - 1, seed)
    adapted = adaptation(before, known, channels, goal)
    assert redistribute(before, known, channels, goal).targets.tolist() == plain_redistribute(adapted, goal)


@settings(max_examples=30, deadline=None)
@given(worlds)
def test_after_readjust_no_move_or_swap_evens_the_load(world):
    letters, utility, channels, seed = world
    goal = Goal(Resources.of(letters), domain=12, utility=utility)
    known = drawn(seed)
    places = readjust(start(channels - 1, seed), known, channels, goal).targets.tolist()
    now, _ = penalty(goal, known.shares, places, channels)
    for one in range(12):
        for other in range(12):
            swapped = list(places)
            swapped[one], swapped[other] = places[other], places[one]
            assert penalty(goal, known.shares, swapped, channels)[0] >= now * (1 - 1e-6)
        for channel in range(channels):
            moved = [*places[:one], channel, *places[one + 1 :]]
            assert penalty(goal, known.shares, moved, channels)[0] >= now * (1 - 1e-6)


@pytest.mark.parametrize("construct", EVERY)
@pytest.mark.parametrize("letters", ["LCL", "LLL", "CCL", "LQL"])
def test_channels_come_and_go(construct, letters):
    known, goal = zipf(2000, 1.0), Goal(Resources.of(letters), domain=2000)
    pair = grown(construct, known, 5, goal)
    for channels in (3, 3, 6, 1):
        pair = construct(pair, known, channels, goal)
        assert pair.channels == channels
        assert set(pair.route(known.hashes).tolist()) == set(range(channels))


def test_readjust_moves_nothing_if_nothing_changed():
    known, goal = zipf(200, 0.6), Goal(domain=200)
    pair = grown(readjust, known, 4, goal)
    again = readjust(pair, known, 4, goal)
    assert np.array_equal(pair.route(known.hashes), again.route(known.hashes))


@settings(max_examples=30, deadline=None)
@given(worlds, st.integers(0, 9))
def test_readjust_of_its_own_result_is_that_result(world, more):
    letters, utility, channels, seed = world
    goal = Goal(Resources.of(letters), domain=30, utility=utility)
    known = drawn(seed, 30)
    pair = readjust(start(channels, seed), known, channels + more, goal)
    assert np.array_equal(pair.targets, readjust(pair, known, channels + more, goal).targets)


@pytest.mark.parametrize("construct", EVERY)
@pytest.mark.parametrize("letters", ["LCL", "LQL"])
def test_the_last_bit_of_a_frequency_decides_nothing(construct, letters):
    known, goal = zipf(200, 0.6), Goal(Resources.of(letters), domain=200)
    rounded = np.random.default_rng(3).choice([0.0, np.inf], len(known))
    near = type(known)(known.hashes, np.nextafter(known.shares, rounded))
    one, other = (grown(construct, each, 6, goal) for each in (known, near))
    assert np.array_equal(one.route(known.hashes), other.route(known.hashes))


@pytest.mark.parametrize("letters", ["LCL", "LQL"])
def test_readjust_fills_several_new_channels(letters):
    known, goal = zipf(200, 0.6), Goal(Resources.of(letters), domain=200)
    pair = readjust(grown(readjust, known, 4, goal), known, 16, goal)
    load = np.bincount(pair.route(known.hashes), known.shares, 16)
    assert load.max() < 1.3 * load.min()


@pytest.mark.parametrize("construct", EVERY)
def test_new_frequencies_are_evened(construct):
    known, goal = zipf(2000, 0.9), Goal(domain=2000)
    pair = grown(construct, known, 6, goal)
    changed = type(known)(known.hashes[::-1], known.shares)
    after = construct(pair, changed, 6, goal)

    # Three of them see the keys of the table only; the others lie as the ring has them, before and after.
    seen = changed if construct is balanced else changed.at_least(changed.of(after.keys).min())

    def most(router):
        return np.bincount(router.route(seen.hashes), seen.shares, 6).max()

    assert most(after) < most(pair)


@pytest.mark.parametrize("construct", EVERY)
def test_no_channels_is_an_error(construct):
    with pytest.raises(BadRouting, match="channels is 0; give 1 or more"):
        construct(start(), zipf(10, 1.0), 0, Goal(domain=10))


@pytest.mark.parametrize("construct", EVERY)
def test_nothing_known_is_the_ring(construct):
    known = zipf(10, 1.0).at_least(1.0)
    pair = construct(start(), known, 2, Goal())
    assert len(pair.keys) == 0
    assert pair.channels == 2


def test_dropped_keys_count_as_migration():
    known, goal = zipf(50, 1.0), Goal(domain=50)
    before = grown(scan, known, 8, goal)
    fewer = adaptation(before, known.at_least(0.05), 8, goal)
    unknown = ~np.isin(before.keys, fewer.tracked.hashes)
    assert unknown.any()
    assert fewer.carried == 0.0  # their frequency is no longer known
