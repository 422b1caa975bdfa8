import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing import WindowShape
from penstock.routing.window_ids import count_marks, time_marks, window_range
from penstock_lab.algorithms.batch_windows import batch_of, batch_shape, pane_shape

shapes = st.tuples(st.integers(1, 12), st.integers(0, 12), st.integers(-20, 20)).map(
    lambda each: WindowShape(each[0] + each[1], each[0], each[2])
)
times = st.lists(st.integers(-40, 40), min_size=1, max_size=30).map(lambda each: np.array(sorted(each)))


def holds(shape, window, instant):
    return shape.start_of(window) <= instant < shape.start_of(window) + shape.size


@given(shapes, times)
def test_a_tuple_is_in_exactly_the_windows_of_its_range(shape, instants):
    first, last = window_range(shape, instants)
    for at, low, high in zip(instants, first, last, strict=True):
        held = [window for window in range(low - 3, high + 4) if holds(shape, window, at)]
        assert held == list(range(low, high + 1))


@given(st.integers(1, 12), st.integers(0, 12))
def test_count_marks_are_the_formulas_of_the_paper(slide, more):
    size = slide + more
    marks = count_marks(WindowShape(size, slide), start=0, count=60)
    i = np.arange(1, 61)
    first, last = -(-(i - size) // slide) + 1, -(-i // slide)
    assert (marks.first + 1 == np.maximum(first, 1)).all()
    assert (marks.last + 1 == last).all()
    assert (marks.closers == ((i >= size) & ((i - size) % slide == 0))).all()


@given(shapes, times, st.integers(0, 30))
def test_every_window_is_closed_once_by_its_last_tuple(shape, instants, ahead):
    frontier = int(instants[-1]) + ahead
    marks = time_marks(shape, instants, frontier)
    closed = {}
    for at, (low, high) in enumerate(zip(marks.first, marks.still_open, strict=True)):
        closed.update(dict.fromkeys(range(low, high), at))
    assert len(closed) == (marks.still_open - marks.first).sum()
    for window in range(int(marks.first.min()), int(marks.last.max()) + 1):
        members = [at for at, instant in enumerate(instants) if holds(shape, window, instant)]
        complete = members and shape.start_of(window) + shape.size <= frontier
        assert closed.get(window) == (members[-1] if complete else None)


@given(shapes, st.integers(1, 6))
def test_a_batch_closes_with_its_last_window(shape, batch):
    windows = time_marks(shape, np.arange(-50, 50), frontier=50)
    batches = time_marks(batch_shape(shape, batch), np.arange(-50, 50), frontier=50)
    assert (batches.closers == (windows.closers & ((windows.first + 1) % batch == 0))).all()


@given(shapes, times, st.integers(1, 6))
def test_the_batch_of_a_window_holds_its_tuples(shape, instants, batch):
    first, last = window_range(shape, instants)
    low, high = window_range(batch_shape(shape, batch), instants)
    assert (low == batch_of(first, batch)).all()
    assert (high == batch_of(last, batch)).all()


@given(shapes, times)
def test_panes_are_windows_of_their_own_shape(shape, instants):
    first, last = window_range(pane_shape(shape), instants)
    assert (first == last).all()
    assert first.tolist() == [shape.pane_of(int(at)) for at in instants]


def test_descending_times_have_no_closers():
    with pytest.raises(BadRouting, match="sort them"):
        time_marks(WindowShape(2, 1), np.array([3, 2]), frontier=9)


def test_no_tuples_give_no_marks():
    assert len(time_marks(WindowShape(2, 1), np.array([], np.int64), frontier=9).closers) == 0
