import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing import Ring


@given(st.integers(1, 40), st.integers(1, 200), st.integers(6, 12), st.integers(0, 2**64 - 1))
def test_a_new_channel_only_takes(channels, replicas, bits, seed):
    before = Ring(channels, replicas=replicas, buckets=1 << bits, seed=seed).cells
    after = Ring(channels + 1, replicas=replicas, buckets=1 << bits, seed=seed).cells
    assert set(after[before != after]) <= {channels}


def test_a_cell_belongs_to_the_nearest_replica_clockwise():
    ring = Ring(3, replicas=5, buckets=8)
    points = sorted((int(p) >> 20, int(p) & 0xFFFFF) for p in ring._points)
    for cell, owner in enumerate(ring.cells):
        after = [channel for position, channel in points if position >= cell << 41]
        assert owner == (after[0] if after else points[0][1])


@pytest.mark.parametrize("channels", [2, 10, 32])
@pytest.mark.parametrize("seed", range(3))
def test_shares_are_as_even_as_the_docstring_says(channels, seed):
    ring = Ring(channels, seed=seed)
    shares = np.bincount(ring.cells, minlength=channels) * channels / ring.buckets
    assert shares.std() < 2 * np.sqrt(1 / ring.replicas + channels / ring.buckets)


def test_a_thousand_channels_have_cells_and_even_shares():
    cells = Ring(1000, buckets=1 << 20).cells
    assert np.bincount(cells, minlength=1000).std() / (len(cells) / 1000) < 0.06


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"channels": 0}, "channels is 0"),
        ({"channels": 2, "replicas": 0}, "replicas is 0"),
        ({"channels": 2, "buckets": 1000}, "buckets is 1000; give a power of two"),
        ({"channels": 20_000}, "buckets is 16384; give a power of two from the number of channels"),
        ({"channels": 2, "seed": -1}, "seed is -1"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(BadRouting, match=message):
        Ring(**given)
