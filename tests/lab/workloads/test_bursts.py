import numpy as np

from penstock_lab.workloads import bursty_rate


def test_a_tenth_of_the_seconds_bursts_to_five_times_the_rate():
    rate = bursty_rate(np.random.default_rng(3), 20_000)
    calm, bursts = rate[rate < 30_000], rate[rate >= 30_000]
    assert 18_000 <= calm.min() <= calm.max() <= 22_000
    assert 90_000 <= bursts.min() <= bursts.max() <= 110_000
    assert abs(len(bursts) / len(rate) - 0.1) < 0.01
