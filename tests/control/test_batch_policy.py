"""Windows are computed in longer batches only where that is needed and pays."""

import json

import numpy as np
import pytest

from penstock.control.batch_policy import BatchPolicy, modelled
from penstock.control.observation import Batched, ChannelLoad, Observation, StageChannels
from penstock.control.setup import Setup
from penstock.distribution.distribution import Change


def seen(epoch, batched, *, channels=4, left=0):
    """An epoch of 1 s."""
    loads = tuple(ChannelLoad(place, 250, 0.25, 0, 0, 0) for place in range(channels))
    stage = StageChannels(
        0, "apply", "balanced", channels, loads, (1.0,) * 3, (1.2,) * 3, (), batched=batched
    )
    given = {"started": float(epoch), "committed": epoch + 1.0, "rows": batched.rows if batched else 0}
    return Observation(epoch, (stage,), left=left, **given)


def batched(size=1, *, windows=400.0, row=1e-6, window=1e-4, **given):
    """Windows of 100 slides; the epoch has 100,000 rows."""
    return Batched(size, 100, 1, 100_000, windows, window, row, **given)


def followed(world, epochs=8, **given):
    """The sizes that a policy asks for, each in the epoch after which it did."""
    policy, size, found = BatchPolicy(**given), 1, {}
    for epoch in range(epochs):
        policy.observe(seen(epoch, world(size)))
        for wish in (each for one in policy.propose(0.0) for each in one.changes):
            size, found[epoch] = wish.value, wish
    return found


def test_the_smallest_batch_stays_while_it_keeps_the_bound():
    assert followed(batched) == {}


def test_where_rows_cost_more_than_there_is_time_for_batches_are_as_long_as_an_epoch_keeps_all_busy():
    found = followed(lambda size: batched(size, row=2e-5))
    assert {epoch: wish.value for epoch, wish in found.items()} == {2: 100}
    assert "none keeps 1.50 s, and of up to 100 it has the least backlog" in found[2].reason


def test_few_windows_an_epoch_stay_apart_since_longer_batches_would_leave_channels_idle():
    assert followed(lambda size: batched(size, windows=4.0, row=2e-5)) == {}


def test_nothing_is_asked_for_while_a_change_is_under_way():
    assert followed(lambda size: batched(size, row=2e-5, changing=True)) == {}


def test_the_model_has_the_measured_costs():
    model = modelled(batched(window=3e-3, row=2e-6), rate=1e5, channels=4, headroom=0.1)
    assert (model.shape.size, model.shape.slide) == (25_000, 250)
    one = model.cost(np.array([1]))[0]
    # 250 rows a slide, each of which four channels receive
    assert one == pytest.approx(3e-3 / (4 * 250) + 2e-6)


def test_it_is_written_down_and_goes_on():
    policy = BatchPolicy()
    policy.observe(seen(0, batched(row=2e-5)))
    again = BatchPolicy()
    again.resume(json.loads(json.dumps(policy.to_json())))
    for epoch in (1, 2):
        again.observe(seen(epoch, batched(row=2e-5)))
    ((wish,),) = (each.changes for each in again.propose(0.0))
    assert isinstance(wish, Change)
    assert (wish.stage, wish.setting, wish.words()) == (0, "batch", "batches of 100 windows")
    observation = seen(1, batched())
    assert Observation.from_json(json.loads(json.dumps(observation.to_json()))) == observation
    assert list(Setup({"batches": {"bound": 2.0}}).controller(lambda _: None).policies) == ["batches"]
