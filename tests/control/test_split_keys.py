"""When keys are split, into how much, and when they are left alone."""

import numpy as np

from penstock.control.layout.split_keys import SplitKeys
from penstock.control.observation import ChannelLoad, KnownKeys, StageChannels
from penstock.routing import Frequencies, first_router
from penstock_lab.workloads import zipf_shares

EVEN, UNEVEN = (1000, 1010, 990, 1000), (3000, 500, 300, 200)


def skewed(keys=2000, exponent=1.5, seed=1):
    hashes = np.random.default_rng(seed).integers(0, 2**64, keys, np.uint64)
    return Frequencies(hashes, zipf_shares(keys, exponent))


def stage(loads, current=None, known=None):
    known = skewed() if known is None else known
    signed = tuple(known.hashes.view(np.int64).tolist())
    channels = tuple(ChannelLoad(place, each, 1.0, 1, 1, 1) for place, each in enumerate(loads))
    even = (1.0, 1.0, 1.0)
    keys = KnownKeys(signed, tuple(known.shares.tolist()), texts={7: "seven"})
    return StageChannels(
        0,
        "agg",
        "balanced",
        4,
        channels,
        even,
        even,
        (),
        known=keys,
        domain=2000,
        sub_keys=current,
        splits=True,
    )


def decided(*epochs, current=None, known=None):
    """The sub-keys after epochs with these tuples in the channels."""
    splitting = SplitKeys()
    for loads in epochs:
        splitting.observe(stage(loads, current, known))
    return splitting.decide(stage(epochs[-1], current, known), first_router("balanced", len(epochs[-1])))


def test_even_channels_keep_their_keys_whole():
    assert decided(EVEN) is None


def test_uneven_channels_split_their_hot_keys():
    found = decided(UNEVEN)
    assert found is not None
    assert found.keys[0].share == max(each.share for each in found.keys)
    assert all(each.parts > 1 for each in found.keys)


def test_few_rows_and_one_channel_decide_nothing():
    assert decided((30, 2, 1, 1)) is None
    assert decided((9000,)) is None


def test_a_plan_stays_while_it_is_good_and_goes_when_keys_are_even():
    known = skewed()
    first = decided(UNEVEN, known=known)
    assert decided(EVEN, current=first, known=known) is first
    assert decided(EVEN, current=first, known=skewed(seed=2)) != first
    assert decided(EVEN, current=first, known=skewed(60_000, exponent=0.0)) is None


def test_the_text_of_a_key_is_known():
    found = decided(UNEVEN, known=Frequencies(np.array([7], np.uint64), np.array([0.5])))
    assert (
        found.words(4)
        == "seven with 50.0 % of the rows, 2.0 times the fair share of 1/4, into 2,048 sub-keys"
    )
