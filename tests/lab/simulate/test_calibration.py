from dataclasses import astuple
from itertools import count

import numpy as np
import pytest

from penstock_lab.simulate import calibrate
from penstock_lab.simulate.handover import best_seconds, measure_handover
from penstock_lab.simulate.records import integers

BATCH = 32_768
NEW = BATCH // 8


def readings():
    """A clock that is a second later at every reading: all work takes exactly one second."""
    return count().__next__


@pytest.fixture(scope="module")
def costs():
    return calibrate(quick=True, seed=7, clock=readings())


def test_costs_are_for_one_tuple(costs):
    for work in (costs.records, costs.integers):
        assert astuple(work) == (1 / BATCH, 1 / BATCH, 1 / BATCH, 1 / (2 * NEW))


def test_a_product_that_takes_as_long_over_more_pairs_has_free_comparisons(costs):
    assert costs.compare == 0
    assert costs.probe == 1 / 2048


def test_a_transfer_that_takes_as_long_for_more_tuples_is_the_cost_of_the_batch():
    table = integers(np.random.default_rng(1), BATCH, 0, 1_000_000)
    handover = measure_handover(table, "value", repeats=2, clock=readings())
    assert handover.route == 1 / BATCH
    assert (handover.send, handover.receive) == (0, 0)
    assert (handover.send_batch, handover.receive_batch) == (1, 1)


def test_the_shortest_run_counts_and_the_first_does_not():
    took = iter([1.0, 5.0, 3.0, 4.0])
    now = 0.0

    def work():
        nonlocal now
        now += next(took)

    assert best_seconds(work, 3, lambda: now) == 3.0
