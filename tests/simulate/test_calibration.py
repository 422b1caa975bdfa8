from dataclasses import astuple

import numpy as np

from penstock.simulate import calibrate
from penstock.simulate.handover import measure_handover
from penstock.simulate.records import integers


def test_everything_costs_something_and_less_than_a_millisecond():
    costs = calibrate(quick=True, seed=7)
    for group in (costs.records, costs.integers, costs.record_links, costs.integer_links):
        assert all(0 < seconds < 1e-3 for seconds in astuple(group))
    assert 0 < costs.compare < costs.records.join


def test_a_batch_costs_more_than_a_tuple():
    costs = measure_handover(integers(np.random.default_rng(1), 32_768, 0, 1_000_000), "value", repeats=2)
    assert costs.send_batch > 10 * costs.send
    assert costs.receive_batch > 10 * costs.receive
