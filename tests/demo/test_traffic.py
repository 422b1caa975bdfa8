import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.demo.traffic import QueueEnd, tile_middle, traffic

SPEEDS = st.lists(st.sampled_from([None, float("nan"), 0.0, 12.0, 15.0, 15.1, 30.0, 49.9, 50.0, 90.0]))
detector = QueueEnd("speed")


def state(speeds):
    return detector.accumulate(np.zeros(len(speeds), np.int64), 1, pa.array(speeds, pa.float64()))


def jam(speeds):
    return detector.finish(state(speeds)).to_pylist() == [True]


def oracle(speeds):
    freed, reports, standing = False, 0, 0
    for speed in speeds:
        if speed is None or speed != speed:  # noqa: PLR0124 -- NaN
            continue
        if speed >= 50:
            freed, reports, standing = True, 0, 0
            continue
        reports += 1
        standing += speed <= 15
    return freed and standing >= 5 and 2 * standing >= reports


@given(SPEEDS)
def test_it_says_what_plain_python_says(speeds):
    assert jam(speeds) == oracle(speeds)


@given(st.lists(SPEEDS, min_size=1, max_size=6))
def test_panes_merged_from_the_left_give_the_whole(panes):
    merged = state(panes[0])
    for pane in panes[1:]:
        merged = detector.merge(merged, state(pane))
    assert merged.equals(state([speed for pane in panes for speed in pane]))


@given(SPEEDS, SPEEDS, SPEEDS)
def test_the_merge_is_associative(first, second, third):
    a, b, c = state(first), state(second), state(third)
    assert detector.merge(detector.merge(a, b), c).equals(detector.merge(a, detector.merge(b, c)))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([None, 10.0, 40.0, 60.0]))))
def test_groups_do_not_touch_each_other(rows):
    groups = np.array([group for group, _ in rows], np.int64)
    together = detector.accumulate(groups, 4, pa.array([speed for _, speed in rows], pa.float64()))
    for each in range(4):
        alone = state([speed for group, speed in rows if group == each])
        assert together.slice(each, 1).to_pylist() == alone.to_pylist()


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [
        ([60.0] + [10.0] * 5, True),
        ([60.0] + [10.0] * 4, False),
        ([10.0] * 9, False),
        ([60.0] + [10.0] * 9 + [60.0], False),
        ([60.0] + [10.0] * 5 + [30.0] * 5, True),
        ([60.0] + [10.0] * 5 + [30.0] * 6, False),
    ],
    ids=["queue", "too few", "always stood", "flows again", "half stand", "most roll"],
)
def test_by_example(speeds, expected):
    assert jam(speeds) is expected


def test_whole_numbers_are_speeds_too():
    batch = detector.accumulate(np.zeros(6, np.int64), 1, pa.array([60, 5, 5, 5, 5, 5]))
    assert detector.finish(batch).to_pylist() == [True]


def test_the_state_is_as_declared():
    assert state([60.0, 5.0]).schema.names == list(QueueEnd.state)


def test_the_result_has_the_columns_that_the_demo_reads(tmp_path):
    schema = traffic(tmp_path).schema
    assert schema.names == ("window_start", "window_end", "area", "reports", "mean", "top", "jam")


def grid(lon, lat, metres):
    row = math.floor(lat * 111_320 / metres)
    return f"{row}:{math.floor(lon * 111_320 * math.cos(math.radians(row * metres / 111_320)) / metres)}"


@given(st.floats(-179, 179), st.floats(-80, 80), st.sampled_from([100, 500, 1000]))
def test_the_middle_of_a_tile_lies_in_it(lon, lat, metres):
    area = grid(lon, lat, metres)
    assert grid(*tile_middle(area, metres), metres) == area
