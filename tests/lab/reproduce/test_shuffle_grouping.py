import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_lab.algorithms.shuffle_messages import ShuffleSettings
from penstock_lab.algorithms.shuffle_scheduler import SchedulerPhase
from penstock_lab.reproduce.shuffle_cluster import Cluster, completion_times, zipf_tuples
from penstock_lab.reproduce.shuffle_epochs import epoch_checks, epoch_rows, measure_epochs
from penstock_lab.reproduce.shuffle_grouping import SHUFFLE_GROUPING


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=40))
def test_completion_is_that_of_queues_first_come_first_served(tuples):
    routes, seconds, gaps = (np.array(each) for each in zip(*tuples, strict=True))
    arrivals, free, expected = np.cumsum(gaps), [0, 0, 0], []
    for channel, taken, arrival in zip(routes, seconds, arrivals, strict=True):
        free[channel] = max(free[channel], arrival) + taken
        expected.append(free[channel] - arrival)
    assert completion_times(routes, seconds * 1.0, arrivals * 1.0) == pytest.approx(expected)


def test_a_cluster_is_the_same_every_time():
    tuples = zipf_tuples(np.random.default_rng(7), 8_192, 1.5)
    runs = [Cluster(2, settings=ShuffleSettings(window=256)) for _ in range(2)]
    routes = [cluster.run(tuples, tuples.arrivals(2, 0.9))[0] for cluster in runs]
    assert (routes[0] == routes[1]).all()
    assert runs[0].scheduler.phase is not SchedulerPhase.ROUND_ROBIN


def test_the_published_shapes_hold_over_epochs():
    epochs = measure_epochs([7], 40)
    assert [check for check in epoch_checks(epochs) if not check.ok] == []
    json.dumps([epoch_rows(epochs), [check.as_dict() for check in epoch_checks(epochs)]])


@pytest.mark.soak
def test_the_published_shapes_hold():
    assert [check for check in SHUFFLE_GROUPING.run(quick=True, seed=7).checks if not check.ok] == []
