import numpy as np
import pytest

from penstock_lab.workloads import RATE_WORKLOADS, rates_of


def made(name, periods=400, seed=4):
    return rates_of(name, np.random.default_rng(seed), periods)


@pytest.mark.parametrize("name", RATE_WORKLOADS)
def test_rates_come_from_the_seed_and_keep_to_what_is_declared(name):
    one = made(name)
    assert one.rows.shape == (400, 80)
    assert (one.rows == made(name).rows).all()
    assert (one.rows != made(name, seed=5).rows).any()
    most = one.declared.get("burst_peak", one.declared.get("max_rate"))
    assert (one.rows.mean(axis=0) <= most * 1.02).all()
    assert one.rows.mean(axis=0) == pytest.approx(one.declared["expected_rate"], rel=0.6)


@pytest.mark.parametrize("name", ["psfcw", "ptfcw"])
def test_pairs_swing_against_each_other(name):
    rows = made(name).rows
    total = rows.sum(axis=1)
    assert np.ptp(total) < 0.03 * total.mean()
    assert np.corrcoef(rows[:, 0], rows[:, 1])[0, 1] < -0.9


@pytest.mark.parametrize("name", ["sfvar", "tfvar"])
def test_the_total_varies(name):
    total = made(name).rows.sum(axis=1)
    assert total.max() > 1.6 * total.min()


def test_steps_jump_and_trends_do_not():
    largest = {name: np.abs(np.diff(made(name).rows, axis=0)).max() for name in ("sfvar", "tfvar")}
    assert largest["sfvar"] > 2 * largest["tfvar"]


def test_bursts_have_their_peak_and_their_share():
    one = made("bursty", 2000)
    full = one.rows > 0.999 * one.declared["burst_peak"]
    assert full.mean() == pytest.approx(0.45, abs=0.05)  # half the time, but for periods that are cut
    assert (one.rows == 0).mean() == pytest.approx(0.45, abs=0.05)
