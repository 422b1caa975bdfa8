import pytest

import penstock as ps
from penstock.control.observation import most_over_least
from penstock.errors import BadRescale


def seen(epoch, *tuples, moving=False):
    loads = tuple(ps.ChannelLoad(place, each, 1.0, 1, 1, 1) for place, each in enumerate(tuples))
    ratio = most_over_least(tuples)
    stage = ps.StageChannels(
        0, "agg", "balanced", len(tuples), loads, (1.0, 1.0, ratio), (1.2, 1.2, 1.2), (), moving=moving
    )
    return ps.Observation(epoch, (stage,))


def test_uneven_epochs_in_a_row_call_for_a_new_router_and_then_for_a_pause():
    loads = [(90, 50), (90, 50), (50, 50), (90, 50), (90, 50), (90, 50), (90, 50)]
    policy = ps.rebalance_when(1.2, epochs=2, pause=2)
    asked = [epoch for epoch, load in enumerate(loads) if policy(seen(epoch, *load))]
    assert asked == [1, 4, 6]


def test_it_waits_while_state_moves():
    policy = ps.rebalance_when(1.2, epochs=1, pause=0)
    assert policy(seen(0, 90, 50, moving=True)) == []
    assert policy(seen(1, 90, 50))[0].channels == 2


def test_an_idle_epoch_says_nothing_about_the_load():
    """Defect 7: an idle stage counted again with the load of an earlier epoch."""
    policy = ps.rebalance_when(1.2, epochs=2, pause=0)
    assert policy(seen(0, 90, 50)) == []
    assert policy(seen(1, 0, 0)) == []
    assert policy(seen(2, 90, 50))


def test_an_empty_channel_is_no_infinity_and_few_tuples_are_no_reason():
    """Defect 7: a quiet epoch with an empty channel had an infinite imbalance and asked for a new router."""
    policy = ps.rebalance_when(1.2, epochs=1, pause=0)
    assert policy(seen(0, 3, 0, 2, 1)) == []
    assert policy(seen(1, 0, 0)) == []
    (asked,) = policy(seen(2, 400, 0))
    assert asked.reason == "the busiest channel had 400.00 times the tuples of the least busy one"


def test_nonsense_is_refused():
    with pytest.raises(BadRescale, match="above 1"):
        ps.rebalance_when(1.0)
