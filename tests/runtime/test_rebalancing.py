import pytest

import penstock as ps
from penstock.errors import BadRescale


def seen(epoch, *tuples, moving=False):
    loads = tuple(ps.ChannelLoad(place, each, 1.0, 1, 1, 1) for place, each in enumerate(tuples))
    ratio = max(tuples) / min(tuples)
    stage = ps.StageChannels(
        0, "agg", "balanced", len(tuples), loads, (1.0, 1.0, ratio), (1.2, 1.2, 1.2), (), moving=moving
    )
    return ps.Observation(epoch, (stage,))


def test_uneven_epochs_in_a_row_call_for_a_new_router_and_then_for_a_pause():
    #        epoch  0     1     2     3     4     5     6
    loads = [(9, 5), (9, 5), (5, 5), (9, 5), (9, 5), (9, 5), (9, 5)]
    policy = ps.rebalance_when(1.2, epochs=2, pause=2)
    asked = [epoch for epoch, load in enumerate(loads) if policy(seen(epoch, *load))]
    assert asked == [1, 4, 6]


def test_it_waits_while_state_moves():
    policy = ps.rebalance_when(1.2, epochs=1, pause=0)
    assert policy(seen(0, 9, 5, moving=True)) == []
    assert policy(seen(1, 9, 5))[0].channels == 2


def test_nonsense_is_refused():
    with pytest.raises(BadRescale, match="above 1"):
        ps.rebalance_when(1.0)
