import numpy as np
import pytest

from penstock.routing import LQL, Goal, Growth, HashPair, Ring, balance, loads, relative_migration
from penstock.sketches import splitmix64
from penstock_lab.reproduce.partitioning_growth import Case, measure
from penstock_lab.reproduce.zipf_keys import _APART, zipf_keys


def test_sums_by_cell_are_exact():
    keys = zipf_keys(60_000, 0.9, seed=3)
    ranks = np.arange(1, 60_001)
    hashes = splitmix64(ranks.astype(np.uint64), 3 + _APART)
    shares = ranks**-0.9 / (ranks**-0.9).sum()
    before = Ring(6)
    after = HashPair(hashes[:40], (np.arange(40) % 7).astype(np.int32), Ring(7))
    whole = balance(LQL, {g: loads(after.route(hashes), g.costs(shares), 7) for g in Growth})
    assert keys.balance(after, LQL).overall == pytest.approx(whole.overall)
    moved = relative_migration(before, after, hashes, shares)
    assert keys.migration(before, after, LQL) == pytest.approx(moved)


def test_uniform_is_the_key_number_modulo_the_channels():
    found = measure(Case(Goal(domain=90), 1.0, 10, seed=0, ring=0), "uniform")
    shares = 1 / np.arange(1, 91)
    stays = np.arange(90) % 9 == np.arange(90) % 10
    assert found.migration == pytest.approx(10 * shares[~stays].sum() / shares.sum())
