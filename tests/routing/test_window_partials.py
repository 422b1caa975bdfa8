"""A skewed window stage that grows: what its channels keep, receive and form stays even."""

import numpy as np
import pytest

import penstock as ps
from penstock.routing import Frequencies, Goal, balanced, first_router
from penstock.routing.balance import loads
from penstock.sketches.splitmix import splitmix64

KEYS, TUPLES = 100_000, 200_000  # tuples of a pane
SHARES = 1 / np.arange(1, KEYS + 1)
SHARES /= SHARES.sum()
# Keys without a tuple in a pane have no partial in it.
PARTIALS = 1 - np.exp(-SHARES * TUPLES)
STREAM = ps.stream("calls", "time timestamp, phone string, seconds int", time="time")
WINDOWS = STREAM.group_by("phone").window("1 minute").agg(n=ps.count()).operator


def grown(resources, seed):
    """Routers of 4, 8 and 10 channels, and the hashes of all keys."""
    hashes = splitmix64(np.arange(KEYS, dtype=np.uint64), seed)
    known, goal = Frequencies(hashes, SHARES).at_least(2e-4), Goal(resources, domain=KEYS)
    pair = first_router("balanced", 4)
    for channels in (4, 8, 10):
        pair = balanced(pair, known, channels, goal)
    return pair, hashes


def uneven(pair, hashes, costs):
    load = loads(pair.route(hashes), costs, pair.channels)
    return load.max() / load.min()


@pytest.mark.parametrize("seed", range(4))
def test_growing_leaves_partials_even(seed):
    """Defect 2: with linear state partials were uneven by 2.7 to 2.9, by 1.05 over untouched cells."""
    pair, hashes = grown(WINDOWS.resources("rows"), seed)
    assert uneven(pair, hashes, PARTIALS) <= 1.2
    # One key has 8 % of the tuples and the least part of the keys of a channel 4 %: this is about the least.
    assert uneven(pair, hashes, SHARES) <= 1.45


@pytest.mark.parametrize("form", ["combined", "partials"])
@pytest.mark.parametrize("seed", range(4))
def test_partials_from_elsewhere_are_even_whatever_the_skew(form, seed):
    """Defect 2: with map-side combining a hot key sends as many rows as any other frequent key."""
    pair, hashes = grown(WINDOWS.resources(form), seed)
    assert uneven(pair, hashes, PARTIALS) <= 1.1
    assert len(pair.keys) == 0
