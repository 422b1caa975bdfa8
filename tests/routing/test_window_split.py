import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing import WindowShape
from penstock.routing.window_ids import count_marks, time_marks, window_range
from penstock.routing.window_split import copies, deliveries, partition_channel
from penstock_lab.algorithms.batch_windows import batch_of, batch_shape, copies_per_tuple

shapes = st.tuples(st.integers(1, 9), st.integers(0, 20), st.integers(-20, 20)).map(
    lambda each: WindowShape(each[0] + each[1], each[0], each[2])
)
times = st.lists(st.integers(-40, 40), min_size=1, max_size=20).map(lambda each: np.array(sorted(each)))


def test_three_tuples_make_five_copies_in_batches_of_three_against_nine():
    shape = WindowShape(3, 1)
    batched = copies(count_marks(batch_shape(shape, 3), start=30, count=3), channels=2)
    plain = copies(count_marks(shape, start=30, count=3), channels=2)
    assert (len(batched.tuples), len(plain.tuples)) == (5, 9)
    assert 3 * copies_per_tuple(batch_shape(shape, 3)) == pytest.approx(5)


def test_tuples_four_and_five_are_in_both_batches_of_figure_2():
    sent = copies(count_marks(batch_shape(WindowShape(3, 1), 3), start=0, count=8), channels=2)
    first, second = (set(sent.tuples[sent.partitions == batch] + 1) for batch in (0, 1))
    assert first & second == {4, 5}


@pytest.mark.parametrize("split", [copies, deliveries])
@given(shapes, times, st.integers(1, 5), st.integers(1, 5))
def test_every_tuple_of_a_window_reaches_the_channel_that_computes_it(
    split, shape, instants, batch, channels
):
    sent = split(time_marks(batch_shape(shape, batch), instants, frontier=41), channels)
    first, last = window_range(shape, instants)
    for at, (low, high) in enumerate(zip(first, last, strict=True)):
        needed = partition_channel(batch_of(np.arange(low, high + 1), batch), channels)
        assert set(sent.channels[sent.tuples == at]) == set(needed)


@given(shapes, times, st.integers(1, 5))
def test_no_channel_is_delivered_a_tuple_twice(shape, instants, channels):
    sent = deliveries(time_marks(shape, instants, frontier=41), channels)
    pairs = list(zip(sent.tuples.tolist(), sent.channels.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))


def test_a_split_needs_a_channel():
    with pytest.raises(BadRouting, match="at least 1"):
        copies(count_marks(WindowShape(2, 1), start=0, count=2), channels=0)
