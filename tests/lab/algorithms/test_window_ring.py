import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRouting
from penstock.routing import WindowShape
from penstock_lab.algorithms.window_ring import WindowParts, WindowRing

rings = st.tuples(st.integers(1, 9), st.integers(0, 30), st.integers(-20, 20), st.integers(1, 5)).map(
    lambda each: WindowRing(WindowShape(each[0] + each[1], each[0], each[2]), each[3])
)


def test_the_ring_of_figure_4():
    # Panes and windows of the paper count from 1: w2 on Node 2 from R3 of Node 1, and R4 and R5 of its own.
    ring = WindowRing(WindowShape(6, 4), channels=3)
    assert ring.windows_in_set == 1
    assert ring.panes_in_set == 2
    assert ring.parts(2 - 1) == WindowParts(
        channel=2 - 1, received=range(3 - 1, 4 - 1), local=range(4 - 1, 6 - 1)
    )
    assert (ring.pane_channels(np.array([3, 4, 5]) - 1) + 1).tolist() == [1, 2, 2]
    assert ring.forwarded(np.array([3, 4, 5]) - 1).tolist() == [True, False, True]


@given(rings, st.integers(-30, 30))
def test_a_window_is_made_of_its_own_panes_and_forwarded_ones_of_the_previous_channel(ring, window):
    parts = ring.parts(window)
    shape = ring.shape
    panes = np.array([*parts.received, *parts.local])
    assert (panes == np.arange(shape.span) + window * shape.stride).all()
    received, local = np.array(parts.received, np.int64), np.array(parts.local, np.int64)
    assert (ring.pane_channels(local) == parts.channel).all()
    assert (ring.pane_channels(received) == (parts.channel - 1) % ring.channels).all()
    assert ring.forwarded(received).all()
    assert parts.channel == ring.window_channels(np.array([window]))[0]


@given(rings, st.lists(st.integers(-60, 60), min_size=1))
def test_counts_over_the_ring_are_counts_over_windows(ring, times):
    shape, instants = ring.shape, np.array(times)
    panes = (instants - shape.offset) // shape.pane
    partials = {
        (int(pane), int(channel)): 0 for pane, channel in zip(panes, ring.route(instants), strict=True)
    }
    for pane, channel in zip(panes, ring.route(instants), strict=True):
        partials[int(pane), int(channel)] += 1
    for window in range(
        shape.first_window_with(int(panes.min())), shape.last_window_with(int(panes.max())) + 1
    ):
        parts = ring.parts(window)
        before = (parts.channel - 1) % ring.channels
        counted = sum(partials.get((pane, parts.channel), 0) for pane in parts.local)
        counted += sum(partials.get((pane, before), 0) for pane in parts.received)
        start = shape.start_of(window)
        assert counted == ((instants >= start) & (instants < start + shape.size)).sum()


@given(rings)
def test_each_set_forwards_as_many_results_as_windows_share_panes(ring):
    own = np.arange(ring.panes_in_set) + ring.shape.span - ring.shape.stride
    assert ring.forwarded(own).sum() == ring.shape.span - ring.shape.stride


def test_a_ring_needs_a_channel():
    with pytest.raises(BadRouting, match="at least 1"):
        WindowRing(WindowShape(2, 1), channels=0)
