"""A total of channels follows the cost of stages, which take turns, in one proposal."""

from penstock.control.controller import Controller
from penstock.control.layout import LayoutPolicy, LayoutSettings
from penstock.control.limits import Budget, Limits
from penstock.control.observation import ChannelLoad, KnownKeys, Observation, StageChannels
from penstock.routing import first_router

ROUTERS = {str(channels): first_router("balanced", channels) for channels in range(1, 9)}


def seen(epoch, *stages):
    """Stages by their channels and busy seconds."""
    return Observation(
        epoch,
        tuple(
            StageChannels(
                number,
                "agg",
                "balanced",
                channels,
                tuple(
                    ChannelLoad(place, 100, seconds / channels, 9, 9, 1000, 100, seconds / channels)
                    for place in range(channels)
                ),
                (1.0,) * 3,
                (1.2,) * 3,
                router=str(channels),
                known=KnownKeys(),
                domain=1000,
            )
            for number, (channels, seconds) in enumerate(stages)
        ),
        slots=8,
        cores=8.0,
        committed=float(epoch),
    )


def asked(observations, limits=None):
    policy = LayoutPolicy(ROUTERS.__getitem__, LayoutSettings(total=True))
    control, found = Controller({"layout": policy}, Budget(limits or Limits())), []
    for each in observations:
        control.observe(each)
        rulings = control.decide(each.committed)
        found.append({one.decision.stage: one.decision.channels for one in rulings if one.carried_out})
    return found


def test_channels_follow_the_load_and_the_total_stays():
    found = asked(seen(epoch, (4, 3.0), (4, 1.0)) for epoch in range(8))
    assert next(each for each in found if each) == {0: 5, 1: 3}


def test_where_one_of_the_stages_is_excluded_none_changes():
    found = asked([seen(epoch, (4, 3.0), (4, 1.0)) for epoch in range(8)], Limits(excluded_stages=[1]))
    assert found == [{}] * 8


def test_an_even_load_changes_nothing():
    assert asked(seen(epoch, (4, 2.0), (4, 2.1)) for epoch in range(20)) == [{}] * 20


def test_a_small_gain_is_not_worth_the_price():
    assert asked(seen(epoch, (4, 3e-3), (4, 1e-3)) for epoch in range(60)) == [{}] * 60
