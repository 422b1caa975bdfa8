"""Channels of a total follow the busy time of stages, if that lasts and pays."""

import json

from penstock.control.allotment_policy import AllotmentPolicy
from penstock.control.observation import ChannelLoad, Observation, StageChannels


def seen(epoch, *stages, slots=8):
    """Stages by their channels and busy seconds."""
    return Observation(
        epoch,
        tuple(
            StageChannels(
                number,
                "agg",
                "balanced",
                channels,
                tuple(ChannelLoad(place, 100, seconds / channels, 9, 9, 1000) for place in range(channels)),
                (1.0,) * 3,
                (1.2,) * 3,
                (),
            )
            for number, (channels, seconds) in enumerate(stages)
        ),
        slots=slots,
    )


def asked(policy, *observations):
    found = []
    for each in observations:
        policy.observe(each)
        found.append({wish.stage: wish.channels for wish in policy.decide(0.0)})
    return found


def test_channels_follow_the_load():
    found = asked(AllotmentPolicy(8), *(seen(epoch, (4, 3.0), (4, 1.0)) for epoch in range(8)))
    assert next(each for each in found if each) == {0: 6, 1: 2}
    assert found[:4] == [{}] * 4


def test_an_even_load_and_one_epoch_of_another_load_change_nothing():
    even = [seen(epoch, (4, 2.0), (4, 2.1)) for epoch in range(20)]
    odd = [*even[:10], seen(10, (4, 6.0), (4, 2.0)), *even[11:]]
    assert asked(AllotmentPolicy(8), *odd) == [{}] * 20


def test_a_small_gain_is_not_worth_the_price():
    found = asked(AllotmentPolicy(8), *(seen(epoch, (4, 3e-3), (4, 1e-3)) for epoch in range(60)))
    assert found == [{}] * 60


def test_hosted_stages_add_to_the_load_of_their_host():
    policy = AllotmentPolicy(8, {2: 1})
    found = asked(policy, *(seen(epoch, (4, 1.0), (4, 0.5), (4, 2.5)) for epoch in range(8)))
    assert next(each for each in found if each) == {0: 2, 1: 6}


def test_its_state_survives_a_restart():
    given = [seen(epoch, (4, 3.0), (4, 1.0)) for epoch in range(8)]
    first, second = AllotmentPolicy(8), AllotmentPolicy(8)
    begun = asked(first, *given[:3])
    second.resume(json.loads(json.dumps(first.to_json())))
    assert begun + asked(second, *given[3:]) == asked(AllotmentPolicy(8), *given)


def test_the_reason_has_the_numbers():
    policy = AllotmentPolicy(8)
    for epoch in range(8):
        policy.observe(seen(epoch, (4, 3.0), (4, 1.0)))
        if wishes := policy.decide(0.0):
            break
    assert wishes[0].reason.startswith("the stage has 75% of the busy time and 4 of 8 channels; moving ")
    assert wishes[0].numbers["gain"] > wishes[0].numbers["price"]
