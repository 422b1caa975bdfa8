import numpy as np
import pytest

from penstock_lab.reproduce.hot_keys import HOT_KEYS
from penstock_lab.reproduce.rate_aware_panes import RATE_AWARE_PANES, pane_sizes
from penstock_lab.reproduce.relocation import RELOCATION, Plain, channel_counts, relocated, sub_keys
from penstock_lab.reproduce.skewed_keys import SkewedKeys
from penstock_lab.workloads import bursty_rate


@pytest.mark.parametrize("experiment", [RATE_AWARE_PANES, RELOCATION, HOT_KEYS], ids=lambda each: each.id)
def test_every_shape_of_the_paper_holds(experiment):
    outcome = experiment.run(quick=True, seed=7)
    assert [check for check in outcome.checks if not check.ok] == []
    assert len(outcome.figures) == 1


def test_bursts_are_rare_and_five_times_the_rate():
    rate = bursty_rate(np.random.default_rng(1), 20_000)
    assert ((rate < 22_000) | (rate > 90_000)).all()
    assert (rate > 90_000).mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("length", [0.5, 1, 2])
def test_panes_hold_every_tuple(length):
    rate = bursty_rate(np.random.default_rng(1), 100)
    assert pane_sizes(rate, length).sum() == pytest.approx(rate.sum())
    assert len(pane_sizes(rate, length)) == 100 / length


@pytest.mark.parametrize("seed", range(5))
def test_the_number_of_channels_always_changes(seed):
    counts = channel_counts(np.random.default_rng(seed))
    assert (np.diff(counts) != 0).all()
    assert 3 <= min(counts) < 6
    assert 28 < max(counts) <= 32


def test_nothing_is_relocated_without_a_change():
    assert relocated(Plain(8), Plain(8)) == relocated(sub_keys(8), sub_keys(8)) == 0


def test_drawn_keys_have_their_frequencies():
    keys = SkewedKeys(100, 1.0)
    drawn = np.bincount(keys.draw(200_000, np.random.default_rng(2)), minlength=100) / 200_000
    assert drawn == pytest.approx(keys.frequencies, abs=0.004)
