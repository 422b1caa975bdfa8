"""One load is evened over channels, keys above a fair share are alone, and little moves."""

import numpy as np
import pytest

from penstock.routing import Frequencies, evened, first_router
from penstock_lab.workloads import zipf_shares

SEED = 5


def zipf(keys, skew):
    hashes = np.random.default_rng(SEED).integers(0, 2**64, keys, np.uint64)
    return Frequencies(hashes, zipf_shares(keys, skew))


def shares(of):
    return of


def squares(of):
    return of**2


def load(router, known, cost, unknown=0.0):
    cells = np.bincount(router.ring.cells, minlength=router.channels) / len(router.ring.cells)
    return np.bincount(router.route(known.hashes), cost(known.shares), router.channels) + unknown * cells


@pytest.mark.parametrize("cost", [shares, squares])
@pytest.mark.parametrize("channels", [2, 3, 8, 20])
@pytest.mark.parametrize("skew", [0.5, 0.8])
def test_keys_of_which_none_is_above_a_fair_share_are_even(cost, channels, skew):
    known = zipf(2_000, skew)
    before = first_router("balanced", channels)
    found = load(evened(before, known, channels, cost, 0.0), known, cost)
    assert found.max() <= 1.1 * max(found.mean(), cost(known.shares).max())


@pytest.mark.parametrize("channels", [3, 8])
def test_a_key_above_a_fair_share_is_alone_and_the_others_are_even(channels):
    known = zipf(2_000, 1.6)
    router = evened(first_router("balanced", channels), known, channels, shares, 0.0)
    hottest = int(router.route(known.hashes[:1])[0])
    found = load(router, known, shares)
    assert found[hottest] <= known.shares[0] * 1.02
    others = np.delete(found, hottest)
    assert others.max() <= 1.1 * max(others.mean(), known.shares[1])


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 4), (4, 8), (8, 4), (8, 1), (5, 6)])
def test_another_number_of_channels_moves_about_the_ideal(before, after):
    known = zipf(2_000, 0.6)
    now = evened(first_router("balanced", before), known, before, shares, 0.2)
    then = evened(now, known, after, shares, 0.2)
    moved = known.shares[now.route(known.hashes) != then.route(known.hashes)].sum()
    moved += 0.2 * (now.ring.cells != then.ring.cells).mean()
    assert moved <= 1.1 * 1.2 * abs(after - before) / max(after, before)


def test_an_even_load_stays_where_it_is():
    known = zipf(2_000, 0.6)
    now = evened(first_router("balanced", 4), known, 4, shares, 0.2)
    again = evened(now, known, 4, shares, 0.2)
    assert (now.route(known.hashes) == again.route(known.hashes)).mean() > 0.98


def test_what_cannot_move_is_filled_up_around():
    known = zipf(2_000, 0.5)
    base = np.array([0.5, 0.0, 0.0, 0.0])
    found = load(evened(first_router("balanced", 4), known, 4, shares, 0.0, base), known, shares) + base
    assert found.max() <= 1.05 * max(0.5, found.mean())
