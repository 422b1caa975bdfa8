from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing import WindowShape
from penstock.routing.batch_size import (
    BatchModel,
    TupleCosts,
    choose_batch,
    exact_updates,
    printed_updates,
)
from penstock.routing.batch_windows import batch_shape
from penstock.routing.window_ids import count_marks

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


@given(st.floats(100, 50_000), st.floats(0, 10_000), st.sampled_from([exact_updates, printed_updates]))
def test_the_smallest_batch_within_the_bound_else_the_least_excess(rate, bound, updates):
    model = replace(MODEL, rate=rate, updates=updates)
    choice = choose_batch(model, period=10, bound=bound, limit=300)
    excess = model.excess(np.arange(1, 301))
    assert choice.within_bound == bool((excess * 10 < bound).any())
    if choice.within_bound:
        assert choice.excess * 10 < bound
        assert (excess[: choice.batch - 1] * 10 >= bound).all()
    else:
        assert choice.excess == excess.min()


def test_equation_1_has_an_inner_minimum_where_no_batch_keeps_the_bound():
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
