"""Scaling experiments: the same streams for every policy; the promises, at length."""

import numpy as np
import pytest

from penstock.control.scaling import Static
from penstock_lab.reproduce.elastic_merged import MERGED_SKETCH
from penstock_lab.reproduce.elastic_runs import Case, course_of
from penstock_lab.reproduce.elastic_scaling import ELASTIC_SCALING
from penstock_lab.reproduce.qos_nodes import QOS_NODES
from penstock_lab.simulate.pool import least_node_seconds
from penstock_lab.workloads.rate_series import played


def test_a_seed_gives_every_policy_the_same_tuples() -> None:
    one, two = (
        course_of(Case(13, "insensitive", "erratic"), Static(units=units), [7, 0]) for units in (8, 9)
    )
    assert np.array_equal(np.sort(one.born), np.sort(two.born))


def test_the_clairvoyant_serves_what_it_must_and_no_more() -> None:
    assert least_node_seconds(np.full(100, 2.5), 5.0, 5) == pytest.approx(250.0)
    assert least_node_seconds(np.append(np.full(10, 10.0), np.zeros(90)), 50.0, 10) == pytest.approx(
        100.0, rel=0.2
    )


def test_a_played_series_keeps_its_shape() -> None:
    work = played(np.array([1.0, 4.0, 1.0, 1.0]), 8.0, 50, np.random.default_rng(7))
    assert work[40:60].mean() > 2 * work[150:].mean()


@pytest.mark.soak
@pytest.mark.parametrize("experiment", [*ELASTIC_SCALING, MERGED_SKETCH, QOS_NODES], ids=lambda each: each.id)
def test_the_published_orders_and_our_promises_hold(experiment) -> None:
    assert [check for check in experiment.run(quick=False, seed=7).checks if check.ok is False] == []
