from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing import Batches, WindowChannels, WindowShape
from penstock.routing.batch_size import (
    BatchModel,
    TupleCosts,
    busy_limit,
    channel_copies,
    choose_batch,
    exact_updates,
    printed_updates,
)
from penstock.routing.window_ids import count_marks
from penstock_lab.algorithms.batch_windows import batch_shape

MODEL = BatchModel(WindowShape(100, 1), TupleCosts(2e-6, 1e-6, 20e-6), rate=8_000, channels=4)


def test_equations_1_and_2_by_hand():
    model = BatchModel(WindowShape(3, 1), TupleCosts(2.0, 10.0, 5.0), 60, 2, updates=printed_updates)
    assert model.cost(np.array([3]))[0] == pytest.approx((3 * 4 / 2 * 1 + 2) / 5 * 2.0 + 3 / 5 * 10.0 + 5.0)
    assert model.input_rate(np.array([3]))[0] == pytest.approx(60 / 2 * 5 / 3)


@given(st.integers(1, 9), st.integers(0, 20), st.integers(1, 9))
def test_exact_updates_are_those_that_the_tuples_of_a_batch_make(slide, more, batch):
    shape = WindowShape(slide + more, slide)
    whole = batch_shape(shape, batch)
    marks = count_marks(shape, start=0, count=whole.size)
    updates = (np.minimum(marks.last, batch - 1) - marks.first + 1).sum()
    assert updates == exact_updates(shape, np.array([batch]))[0]


def test_one_window_a_batch_updates_its_tuples_in_both_counts():
    one = np.array([1])
    assert exact_updates(MODEL.shape, one) == printed_updates(MODEL.shape, one) == MODEL.shape.size


@given(st.floats(100, 50_000), st.floats(0.0, 20), st.sampled_from([exact_updates, printed_updates]))
def test_the_smallest_batch_within_the_bound_else_the_least_excess(rate, bound, updates):
    model = replace(MODEL, rate=rate, updates=updates)
    choice = choose_batch(model, period=10, bound=bound, limit=300)
    sizes = np.arange(1, 301)
    excess, delay = model.excess(sizes), model.delay(sizes, 10)
    assert choice.within_bound == bool((delay < bound).any())
    if choice.within_bound:
        assert choice.delay < bound
        assert (delay[: choice.batch - 1] >= bound).all()
    else:
        assert choice.excess == pytest.approx(excess.min())


def test_the_delay_is_the_time_that_the_backlog_of_a_period_takes():
    batch = np.array([4])
    backlog = MODEL.excess(batch)[0] * 10
    assert MODEL.delay(batch, 10)[0] == pytest.approx(backlog * MODEL.cost(batch)[0] / 0.9)


@pytest.mark.parametrize(("shape", "channels", "limit"), [((100, 1), 4, 33), ((6, 2), 4, 1), ((7, 7), 2, 1)])
def test_an_overload_never_makes_batches_longer_than_keep_all_channels_busy(shape, channels, limit):
    model = replace(MODEL, shape=WindowShape(*shape), channels=channels, rate=1e6)
    assert busy_limit(model.shape, channels) == limit
    choice = choose_batch(model, period=10, bound=1)
    assert (choice.batch, choice.within_bound) == (limit, False)


@given(st.integers(1, 9), st.integers(0, 60), st.integers(2, 6))
def test_up_to_the_limit_every_tuple_has_a_window_on_every_channel(slide, more, channels):
    shape = WindowShape(slide + more, slide)
    limit = busy_limit(shape, channels)
    windows = WindowChannels(shape, Batches(limit), channels)
    rows, _ = windows.deliveries(np.arange(500, 500 + 6 * limit * slide * channels))
    copies = len(rows) / (6 * limit * slide * channels)
    assert copies == pytest.approx(channel_copies(shape, np.array([limit]), channels)[0], rel=0.2)
    if limit > 1:
        assert copies == channels


def test_where_a_channel_gets_one_copy_shorter_batches_cost_no_more():
    model = replace(MODEL, rate=1e6, copies=channel_copies)
    assert choose_batch(model, period=10, bound=1).batch == 1
    assert choose_batch(model, period=10, bound=1, limit=400).batch == 400


def test_equation_1_as_printed_has_an_inner_minimum_where_no_batch_keeps_the_bound():
    model = replace(MODEL, rate=34_000, updates=printed_updates)
    choice = choose_batch(model, period=10, bound=0, limit=4_096)
    assert not choice.within_bound
    assert 1 < choice.batch < 4_096


def test_throughput_is_the_rate_that_leaves_no_excess():
    batches = np.array([1, 7, 50])
    for batch, rate in zip(batches, MODEL.throughput(batches), strict=True):
        assert replace(MODEL, rate=float(rate)).excess(np.array([batch]))[0] == pytest.approx(0, abs=1e-6)


def test_a_model_without_channels_is_refused():
    with pytest.raises(BadRouting, match="above 0"):
        replace(MODEL, channels=0)
