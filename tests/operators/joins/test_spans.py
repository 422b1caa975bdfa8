"""Spans and the blocks of pairs that they unfold to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.joins.spans import Spans, TimedRows, _order, around, near

FAR = 1 << 59


def formed(spans, size):
    return [(int(p), int(b)) for block in spans.blocks(size) for p, b in zip(*block, strict=True)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8), st.integers(1, 7))
def test_blocks_of_any_size_hold_all_pairs_once(ends, size):
    low = np.array([min(pair) for pair in ends], np.int64)
    high = np.array([max(pair) for pair in ends], np.int64)
    spans = Spans(np.arange(len(ends)), np.arange(10, 16), low, high)
    expected = [(i, 10 + j) for i in range(len(ends)) for j in range(low[i], high[i])]
    assert formed(spans, size) == expected
    assert all(len(probe) <= size for probe, _ in spans.blocks(size))


@pytest.mark.parametrize("scale", [1, FAR // 10], ids=["near times", "times too far apart for one number"])
@given(data=st.data())
def test_near_finds_what_the_definition_says(scale, data):
    row = st.tuples(st.integers(-1, 2), st.integers(-10, 10))
    sides = [data.draw(st.lists(row, max_size=8)) for _ in range(2)]
    distance = data.draw(st.integers(0, 9)) * scale
    probe, build = (
        TimedRows(
            np.arange(len(side)),
            np.array([key for key, _ in side], np.int64),
            np.array([time * scale for _, time in side], np.int64),
        )
        for side in sides
    )
    spans = near(probe, build, around(distance, distance))
    expected = {
        (i, j)
        for i, (key, time) in enumerate(sides[0])
        for j, (other, when) in enumerate(sides[1])
        if key == other >= 0 and abs(time - when) * scale <= distance
    }
    found = [] if spans is None else formed(spans, 5)
    assert len(found) == len(expected)
    assert set(found) == expected


@given(st.lists(st.integers(0, 2**62 - 1) | st.integers(0, 9), max_size=40))
def test_an_order_is_ascending_and_keeps_equal_numbers_as_they_come(numbers):
    codes = np.array(numbers, np.int64)
    assert _order(codes).tolist() == np.argsort(codes, kind="stable").tolist()
