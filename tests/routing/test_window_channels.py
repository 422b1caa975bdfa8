import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing import Batches, WindowChannels, WindowShape

TIMES = np.arange(-40, 90)


@st.composite
def routers(draw):
    shape = WindowShape(
        (slide := draw(st.integers(1, 6))) + draw(st.integers(0, 20)), slide, draw(st.integers(0, 5))
    )
    batches = Batches(draw(st.integers(1, 5)))
    if draw(st.booleans()):
        batches = batches.changed(draw(st.integers(1, 5)), beyond=draw(st.integers(-9, 30)))
    return WindowChannels(shape, batches, draw(st.integers(1, 5)))


@given(routers())
def test_a_tuple_reaches_exactly_the_channels_of_its_windows_once_each(router):
    rows, channels = router.deliveries(TIMES)
    found = list(zip(TIMES[rows].tolist(), channels.tolist(), strict=True))
    shape, wanted = router.shape, set()
    for window in range(-100, 200):
        (channel,) = router.of(np.array([window])).tolist()
        start = shape.start_of(window)
        wanted |= {(time, channel) for time in TIMES.tolist() if start <= time < start + shape.size}
    assert len(found) == len(set(found))
    assert set(found) == wanted


@given(routers())
def test_the_channel_of_the_last_window_is_among_them(router):
    rows, channels = router.deliveries(TIMES)
    pairs = set(zip(rows.tolist(), channels.tolist(), strict=True))
    assert all((row, channel) in pairs for row, channel in enumerate(router.last(TIMES).tolist()))


@given(st.integers(1, 6), st.integers(1, 6), st.integers(-20, 50))
def test_a_change_cuts_no_batch_and_keeps_windows_up_to_it_where_they_are(size, then, beyond):
    before = Batches(size)
    after = before.changed(then, beyond)
    assert after.start > beyond
    assert after.start % size == 0
    one, other = (WindowChannels(WindowShape(9, 3), each, 4) for each in (before, after))
    windows = np.arange(-30, after.start)
    assert one.of(windows).tolist() == other.of(windows).tolist()
    assert after.settled(after.start) == Batches(then, after.start)
    assert after.settled(after.start - 1) == after


def test_batches_come_back_from_plain_values():
    batches = Batches(3).changed(5, beyond=7)
    assert Batches.from_json(json.loads(json.dumps(asdict(batches)))) == batches


def test_batches_without_windows_are_refused():
    with pytest.raises(BadRouting, match="at least 1"):
        Batches(0)
