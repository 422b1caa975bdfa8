"""When keys are split, into how much, and when they are left alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.observation import ChannelLoad, KnownKeys, StageChannels
from penstock.control.skew.split_keys import SplitKeys
from penstock.control.sub_keys import MOST_SPLIT, SplitKey, SubKeyPlan, plan_sub_keys
from penstock.routing import Frequencies, first_router
from penstock.runtime.dataflow.channels import Formed, Receipt, channel_work
from penstock.runtime.records import EpochPlan, StagePlan
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


@given(st.integers(2, 40), st.floats(0.8, 2.0), st.integers(0, 1000))
def test_sub_keys_even_out_any_skew_as_far_as_keys_are_split(channels, exponent, seed):
    known = skewed(5000, exponent, seed)
    plan = plan_sub_keys(known, channels, {})
    assert plan is not None
    assert len(plan.keys) <= MOST_SPLIT
    whole = SubKeyPlan(()).imbalance(known, channels)
    # Ring and sub-keys deviate by 3 to 5 % each; of the keys left whole, none is large.
    assert plan.imbalance(known, channels) <= min(1.35, whole + 0.2)


def test_a_plan_survives_its_text():
    plan = EpochPlan((StagePlan(4, sub_keys=SubKeyPlan((SplitKey(-5, 0.25, 9, "é"),))), StagePlan(2)), 7)
    assert EpochPlan.from_json(plan.to_json()) == plan


def test_the_work_of_formers_is_theirs():
    formed = Formed(0, 40, 2.0), Formed(1, 60, 3.0)
    for told in ([formed, ()], [formed[:1], formed[1:]]):
        receipts = [
            Receipt(0, (), (), tuples=90, cpu_seconds=1.0, formed=told[0]),
            Receipt(1, (), (), tuples=10, cpu_seconds=0.5, formed=told[1]),
        ]
        found = [(each.rows, each.seconds, each.cpu_seconds) for each in channel_work(receipts)]
        assert found == [(40, 2.0, 3.0), (60, 3.0, 3.5)]
