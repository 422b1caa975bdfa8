"""Keys that cannot be split and have more than a fair share: alone in a channel, and said so."""

import numpy as np
import pytest

from control.simulated import controller, run
from penstock.routing import Frequencies, Goal, Resources, first_router, heavy_keys, next_router
from penstock_lab.simulate import SkewedStage
from penstock_lab.workloads import zipf_shares

KEYS = 20_000
CHANNELS = (2, 3, 8)
SHARES = (1.05, 1.5, 2.5)
"""Of the heaviest key, in fair shares."""


def shares(part):
    """The heaviest key, and others that are skewed too."""
    return np.concatenate([[part], (1 - part) * zipf_shares(KEYS - 1, 0.8)])


def parts(channels):
    return [each / channels for each in SHARES if each < 0.9 * channels]


CASES = [(channels, part) for channels in CHANNELS for part in parts(channels)]


def beside(routes, true, channels):
    """What other keys have in the channel of the heaviest, and the other channels, over their mean."""
    rows = np.bincount(routes, true, channels)
    others = np.delete(rows, routes[0])
    return rows[routes[0]] - true[0], others / others.mean()


@pytest.mark.parametrize(("channels", "part"), CASES)
def test_a_router_that_evens_time_gives_a_heavy_key_a_channel_of_its_own(channels, part):
    rng, true = np.random.default_rng(3), shares(part)
    hashes = rng.integers(0, 2**64, KEYS, dtype=np.uint64)
    known = Frequencies(hashes[:512], true[:512])
    goal = Goal(resources=Resources.of("LLL"), domain=KEYS)
    router = next_router("balanced", first_router("balanced", channels), known, channels, goal)
    rest, others = beside(router.route(hashes), true, channels)
    assert rest == 0
    assert others.max() <= 1.05
    (heavy,) = heavy_keys(known, router, KEYS)
    assert heavy.alone
    assert (heavy.hash, heavy.channel) == (int(hashes[:1].view(np.int64)[0]), router.route(hashes)[0])


@pytest.mark.parametrize(("channels", "part"), CASES)
def test_a_stage_with_a_state_for_each_key_comes_to_the_same_by_measured_time(channels, part):
    """As `process` has it: by its resources alone, numbers of keys would be evened as well."""
    true = shares(part)
    stage = SkewedStage(1, true, channels=channels, slots=channels, letters="CLL")
    run(stage, controller(stage), 12)
    seen = stage.next().stages[0]
    rest, others = beside(stage.find(seen.router).route(stage._hashes), true, channels)
    assert rest == 0
    assert others.max() <= 1.06
    (heavy,) = heavy_keys(seen.known.frequencies, stage.find(seen.router), seen.domain)
    assert heavy.words("process", "Rome") == (
        f"key Rome has {100 * heavy.share:.3g} % of the rows, more than a fair share of "
        f"{100 / channels:.3g} %: it has a channel of its own, nothing more can be done for `process`"
    )


def test_a_key_that_shares_its_channel_is_told():
    known = Frequencies(np.array([5], np.uint64), np.array([0.31]))
    (heavy,) = heavy_keys(known, first_router("balanced", 8), 1_000)
    assert not heavy.alone
    assert heavy.words("process") == (
        "key 0000000000000005 has 31 % of the rows, more than a fair share of 12.5 %, and other keys of "
        "channel 0 have 8.62 %: a channel of its own is all that can be done for `process`"
    )


def test_the_fair_share_is_of_what_heavier_keys_leave():
    hashes = np.arange(4, dtype=np.uint64) << np.uint64(62)
    known = Frequencies(hashes, np.array([0.4, 0.21, 0.19, 0.1]))
    found = heavy_keys(known, first_router("balanced", 4), 1_000)
    assert [(each.share, round(each.fair, 3)) for each in found] == [(0.4, 0.25), (0.21, 0.2)]


@pytest.mark.parametrize("channels", [1, 2])
def test_one_channel_is_left_for_all_other_keys(channels):
    known = Frequencies(np.arange(2, dtype=np.uint64), np.array([0.6, 0.39]))
    assert len(heavy_keys(known, first_router("balanced", channels), 10)) == channels - 1
