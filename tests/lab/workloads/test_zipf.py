import numpy as np

from penstock_lab.workloads import draw, zipf_shares


def test_shares_fall_as_the_rank_says():
    shares = zipf_shares(1000, 1.5)
    assert shares.sum() == 1 or abs(shares.sum() - 1) < 1e-12
    assert np.allclose(shares[0] / shares, np.arange(1, 1001) ** 1.5)


def test_draws_follow_the_shares_and_stay_in_range():
    shares = zipf_shares(50, 1.0)
    drawn = draw(np.random.default_rng(3), shares, 200_000)
    found = np.bincount(drawn, minlength=50) / len(drawn)
    assert len(found) == 50
    assert np.abs(found - shares).max() < 0.005
